package main

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// libraries are those of the language and of cel-go itself, each at its newest.
func libraries() []cel.EnvOption {
	return []cel.EnvOption{
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.EnableIdentifierEscapeSyntax(),
		cel.DefaultUTCTimeZone(true), cel.ParserExpressionSizeLimit(-1), cel.ParserRecursionLimit(-1),
		ext.Strings(), ext.Math(), ext.Lists(), ext.Sets(), ext.Encoders(), ext.Bindings(),
		ext.Regex(), ext.TwoVarComprehensions(), ext.Network(),
	}
}

func writeOther(value ref.Val) (any, error) {
	switch held := value.(type) {
	case ext.IP:
		return tagged("$ip", held.Addr.String()), nil
	case ext.CIDR:
		return tagged("$cidr", held.Prefix.String()), nil
	}
	return nil, fmt.Errorf("no form for %T", value)
}
