package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Values stand in JSON as in tests/differential/wire.py: what JSON has no form for is an object with one key that
// begins with a dollar sign.

const mostValues = 200_000 // in one result, what it shares counted each time

const (
	tooMuch     = "the result is too large"
	nanosPerSec = 1_000_000_000
)

func decode(line []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// failure tells an evaluation that reached a bound of this program from one that ended in an error of the language.
func failure(message string) outcome {
	for _, bound := range []string{"actual cost limit exceeded", "operation interrupted", "operation cancelled", tooMuch} {
		if strings.Contains(message, bound) {
			return outcome{Limit: bound}
		}
	}
	return outcome{Error: message}
}

// typeOf reads "int", ["list", T], ["map", K, V], ["optional", T].
func typeOf(form any) (*cel.Type, error) {
	switch held := form.(type) {
	case string:
		if found, known := plainTypes[held]; known {
			return found, nil
		}
	case []any:
		parts := make([]*cel.Type, 0, 2)
		for _, inner := range held[1:] {
			part, err := typeOf(inner)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		switch {
		case held[0] == "list" && len(parts) == 1:
			return cel.ListType(parts[0]), nil
		case held[0] == "map" && len(parts) == 2:
			return cel.MapType(parts[0], parts[1]), nil
		case held[0] == "optional" && len(parts) == 1:
			return cel.OptionalType(parts[0]), nil
		}
	}
	return nil, fmt.Errorf("no type %v", form)
}

var plainTypes = map[string]*cel.Type{
	"int": cel.IntType, "uint": cel.UintType, "double": cel.DoubleType, "bool": cel.BoolType,
	"string": cel.StringType, "bytes": cel.BytesType, "timestamp": cel.TimestampType,
	"duration": cel.DurationType, "dyn": cel.DynType, "null": cel.NullType,
}

func read(form any) (any, error) {
	switch held := form.(type) {
	case json.Number:
		return held.Int64()
	case []any:
		values := make([]any, len(held))
		for at, inner := range held {
			value, err := read(inner)
			if err != nil {
				return nil, err
			}
			values[at] = value
		}
		return values, nil
	case map[string]any:
		if len(held) == 1 {
			for tag, inner := range held {
				if strings.HasPrefix(tag, "$") {
					return readTagged(tag, inner)
				}
			}
		}
		values := make(map[string]any, len(held))
		for key, inner := range held {
			value, err := read(inner)
			if err != nil {
				return nil, err
			}
			values[key] = value
		}
		return values, nil
	}
	return form, nil
}

func readTagged(tag string, held any) (any, error) {
	text := fmt.Sprint(held)
	switch tag {
	case "$uint":
		return strconv.ParseUint(text, 10, 64)
	case "$double":
		return strconv.ParseFloat(text, 64)
	case "$bytes":
		return base64.StdEncoding.DecodeString(text)
	case "$duration":
		nanos, err := strconv.ParseInt(text, 10, 64)
		return time.Duration(nanos), err
	case "$timestamp":
		nanos, whole := new(big.Int).SetString(text, 10)
		if !whole {
			return nil, fmt.Errorf("no nanoseconds: %s", text)
		}
		seconds, rest := new(big.Int).DivMod(nanos, big.NewInt(nanosPerSec), new(big.Int))
		return time.Unix(seconds.Int64(), rest.Int64()).UTC(), nil
	case "$optional":
		for _, inner := range held.([]any) {
			value, err := read(inner)
			if err != nil {
				return nil, err
			}
			return types.OptionalOf(types.DefaultTypeAdapter.NativeToValue(value)), nil
		}
		return types.OptionalNone, nil
	case "$map":
		entries := map[ref.Val]ref.Val{}
		for _, entry := range held.([]any) {
			pair := entry.([]any)
			key, err := read(pair[0])
			if err != nil {
				return nil, err
			}
			value, err := read(pair[1])
			if err != nil {
				return nil, err
			}
			entries[types.DefaultTypeAdapter.NativeToValue(key)] = types.DefaultTypeAdapter.NativeToValue(value)
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, entries), nil
	}
	return nil, fmt.Errorf("no kind of value %s", tag)
}

func tagged(tag string, held any) map[string]any { return map[string]any{tag: held} }

// write gives a value the form that read takes; left counts down, so that what shares its parts ends.
func write(value ref.Val, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, fmt.Errorf(tooMuch)
	}
	switch held := value.(type) {
	case types.Bool:
		return bool(held), nil
	case types.Int:
		return int64(held), nil
	case types.Uint:
		return tagged("$uint", uint64(held)), nil
	case types.Double:
		return tagged("$double", strconv.FormatFloat(float64(held), 'g', -1, 64)), nil
	case types.String:
		return string(held), nil
	case types.Bytes:
		return tagged("$bytes", base64.StdEncoding.EncodeToString(held)), nil
	case types.Null:
		return nil, nil
	case types.Duration:
		return tagged("$duration", held.Duration.Nanoseconds()), nil
	case types.Timestamp:
		nanos := new(big.Int).Mul(big.NewInt(held.Unix()), big.NewInt(nanosPerSec))
		return tagged("$timestamp", nanos.Add(nanos, big.NewInt(int64(held.Nanosecond())))), nil
	case *types.Optional:
		if !held.HasValue() {
			return tagged("$optional", []any{}), nil
		}
		inner, err := write(held.GetValue(), left)
		return tagged("$optional", []any{inner}), err
	case *types.Type:
		return tagged("$type", held.TypeName()), nil
	case traits.Mapper:
		return writeMap(held, left)
	case traits.Lister:
		size := int(held.Size().(types.Int))
		values := make([]any, 0, min(size, *left+1))
		for at := range size {
			inner, err := write(held.Get(types.Int(at)), left)
			if err != nil {
				return nil, err
			}
			values = append(values, inner)
		}
		return values, nil
	case *types.Err:
		return nil, held
	}
	return writeOther(value)
}

func writeMap(value traits.Mapper, left *int) (any, error) {
	entries := []any{}
	for keys := value.Iterator(); keys.HasNext() == types.True; {
		key := keys.Next()
		name, err := write(key, left)
		if err != nil {
			return nil, err
		}
		inner, err := write(value.Get(key), left)
		if err != nil {
			return nil, err
		}
		entries = append(entries, []any{name, inner})
	}
	return tagged("$map", entries), nil
}
