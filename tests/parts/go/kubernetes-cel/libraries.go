package main

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
	kubernetes "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// libraries are those of the language and of Kubernetes' API server.
func libraries() []cel.EnvOption {
	return []cel.EnvOption{
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.EnableIdentifierEscapeSyntax(),
		cel.DefaultUTCTimeZone(true), cel.ParserExpressionSizeLimit(-1), cel.ParserRecursionLimit(-1),
		ext.Strings(), ext.Sets(), ext.Bindings(), ext.TwoVarComprehensions(),
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(),
	}
}

// writeQuantity gives nanos: what is finer was rounded up when the quantity was read.
func writeQuantity(quantity *resource.Quantity) any {
	number := quantity.DeepCopy()
	exact := number.AsDec()
	nanos := new(inf.Dec).Round(exact, 9, inf.RoundExact)
	return tagged("$quantity", nanos.UnscaledBig())
}

func writeOther(value ref.Val) (any, error) {
	switch held := value.(type) {
	case kubernetes.IP:
		return tagged("$ip", held.Addr.String()), nil
	case kubernetes.CIDR:
		return tagged("$cidr", held.Prefix.String()), nil
	case kubernetes.Quantity:
		return writeQuantity(held.Quantity), nil
	case *kubernetes.Quantity:
		return writeQuantity(held.Quantity), nil
	case kubernetes.URL:
		return tagged("$url", held.URL.String()), nil
	}
	return nil, fmt.Errorf("no form for %T", value)
}
