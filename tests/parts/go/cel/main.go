// Answers what cel-go makes of expressions. It reads batches from standard input, a line of JSON each, and writes
// a line of JSON for each batch: values, errors, or why an expression was refused.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
)

const (
	longest   = 2 * time.Second // for one evaluation
	mostCost  = 50_000_000
	mostBytes = 1 << 26 // in a line
)

// batch is a line of input. Environments are declared in the first that needs them.
type batch struct {
	Environments map[string]map[string]any `json:"environments"` // name -> variable -> type
	Questions    []question                `json:"questions"`
}

type question struct {
	Environment string           `json:"environment"`
	Text        string           `json:"text"`
	Rows        []map[string]any `json:"rows"`
}

type answer struct {
	Refused string    `json:"refused,omitempty"` // by the parser or the checker
	Type    string    `json:"type,omitempty"`
	Rows    []outcome `json:"rows,omitempty"`
}

// outcome has one of three: a value, an error, or which bound was reached.
type outcome struct {
	Value any    `json:"value,omitempty"`
	Null  bool   `json:"null,omitempty"`
	Error string `json:"error,omitempty"`
	Limit string `json:"limit,omitempty"`
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println(version())
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func version() string {
	if built, known := debug.ReadBuildInfo(); known {
		for _, module := range built.Deps {
			if strings.HasSuffix(module.Path, "/cel-go") {
				return module.Path + " " + module.Version
			}
		}
	}
	return "unknown"
}

func run() error {
	environments := map[string]*cel.Env{}
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, mostBytes)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for input.Scan() {
		var asked batch
		if err := decode(input.Bytes(), &asked); err != nil {
			return err
		}
		for name, variables := range asked.Environments {
			environment, err := declared(variables)
			if err != nil {
				return fmt.Errorf("environment %s: %w", name, err)
			}
			environments[name] = environment
		}
		answers := make([]answer, len(asked.Questions))
		for at, one := range asked.Questions {
			environment, known := environments[one.Environment]
			if !known {
				return fmt.Errorf("no environment %s", one.Environment)
			}
			var err error
			if answers[at], err = answered(environment, one); err != nil {
				return fmt.Errorf("%s: %w", one.Text, err)
			}
		}
		if err := output.Encode(answers); err != nil {
			return err
		}
	}
	return input.Err()
}

func declared(variables map[string]any) (*cel.Env, error) {
	options := libraries()
	for name, form := range variables {
		kind, err := typeOf(form)
		if err != nil {
			return nil, err
		}
		options = append(options, cel.Variable(name, kind))
	}
	return cel.NewEnv(options...)
}

func answered(environment *cel.Env, asked question) (answer, error) {
	checked, issues := environment.Compile(asked.Text)
	if issues.Err() != nil {
		return answer{Refused: issues.Err().Error()}, nil
	}
	program, err := environment.Program(checked, cel.InterruptCheckFrequency(1000), cel.CostLimit(mostCost))
	if err != nil {
		return answer{Refused: err.Error()}, nil
	}
	found := answer{Type: checked.OutputType().String(), Rows: make([]outcome, len(asked.Rows))}
	for at, row := range asked.Rows {
		values := make(map[string]any, len(row))
		for name, form := range row {
			if values[name], err = read(form); err != nil {
				return answer{}, err
			}
		}
		found.Rows[at] = evaluated(program, values)
	}
	return found, nil
}

func evaluated(program cel.Program, values map[string]any) (found outcome) {
	defer func() {
		if defect := recover(); defect != nil {
			found = outcome{Error: fmt.Sprintf("panic: %v", defect)}
		}
	}()
	within, done := context.WithTimeout(context.Background(), longest)
	defer done()
	value, _, err := program.ContextEval(within, values)
	if within.Err() != nil {
		return outcome{Limit: "time"}
	}
	if err != nil {
		return failure(err.Error())
	}
	left := mostValues
	written, err := write(value, &left)
	if err != nil {
		return failure(err.Error())
	}
	return outcome{Value: written, Null: written == nil}
}
