// Measures cel-go on the expressions and facts that it reads from standard input as JSON,
// and writes what it found to standard output as JSON. One goroutine; facts are in place before the clock starts.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"cel.dev/cel-go/cel"
)

const (
	rounds  = 7
	atLeast = 200 * time.Millisecond / rounds
)

type question struct {
	Filter string `json:"filter"`
	Score  string `json:"score"`
	Nodes  []any  `json:"nodes"`
	Pod    any    `json:"pod"`
}

type answer struct {
	NanosecondsPerNode float64 `json:"nanoseconds_per_node"`
	Passed             int     `json:"passed"`
	Errors             int     `json:"errors"`
	Sum                float64 `json:"sum"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var asked question
	decoder := json.NewDecoder(os.Stdin)
	decoder.UseNumber()
	if err := decoder.Decode(&asked); err != nil {
		return err
	}
	filter, err := program(asked.Filter)
	if err != nil {
		return err
	}
	score, err := program(asked.Score)
	if err != nil {
		return err
	}
	pod := plain(asked.Pod)
	facts := make([]cel.Activation, len(asked.Nodes))
	for at, node := range asked.Nodes {
		if facts[at], err = cel.NewActivation(map[string]any{"node": plain(node), "pod": pod}); err != nil {
			return err
		}
	}
	var found answer
	best := time.Duration(1<<63 - 1)
	for range rounds {
		passes := 0
		begin := time.Now()
		for passes == 0 || time.Since(begin) < atLeast {
			found = decide(filter, score, facts)
			passes++
		}
		best = min(best, time.Since(begin)/time.Duration(passes))
	}
	found.NanosecondsPerNode = float64(best.Nanoseconds()) / float64(len(facts))
	return json.NewEncoder(os.Stdout).Encode(found)
}

func program(text string) (cel.Program, error) {
	environment, err := cel.NewEnv(cel.Variable("node", cel.DynType), cel.Variable("pod", cel.DynType))
	if err != nil {
		return nil, err
	}
	checked, issues := environment.Compile(text)
	if issues.Err() != nil {
		return nil, errors.Join(fmt.Errorf("in %q", text), issues.Err())
	}
	return environment.Program(checked, cel.EvalOptions(cel.OptOptimize))
}

// decide asks both expressions of every node.
func decide(filter, score cel.Program, facts []cel.Activation) answer {
	var found answer
	for _, node := range facts {
		if value, _, err := filter.Eval(node); err != nil {
			found.Errors++
		} else if value.Value() == true {
			found.Passed++
		}
		if value, _, err := score.Eval(node); err != nil {
			found.Errors++
		} else {
			found.Sum += value.Value().(float64)
		}
	}
	return found
}

// plain has the numbers of JSON as int64, which is what CEL calls an int.
func plain(value any) any {
	switch held := value.(type) {
	case map[string]any:
		for key, inner := range held {
			held[key] = plain(inner)
		}
	case json.Number:
		if whole, err := held.Int64(); err == nil {
			return whole
		}
	}
	return value
}
