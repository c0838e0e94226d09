// The Go SDK over standard input and output: lists what a server has, calls one of its tools and one that it does not have.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type request struct {
	Command []string `json:"command"`
	Call    *struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"call"`
}

func attempt[T any](said T, err error) any {
	if err == nil {
		return said
	}
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return map[string]any{"code": wire.Code, "message": wire.Message}
	}
	return map[string]any{"error": err.Error()}
}

func run(asked request) (map[string]any, error) {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, nil)
	command := exec.Command(asked.Command[0], asked.Command[1:]...)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	opened := session.InitializeResult()
	said := map[string]any{"opened": opened}
	if opened.Capabilities.Tools != nil {
		tools, err := session.ListTools(ctx, nil)
		said["tools"] = attempt(tools, err)
		if asked.Call != nil {
			called, err := session.CallTool(ctx, &mcp.CallToolParams{Name: asked.Call.Name, Arguments: asked.Call.Arguments})
			said["called"] = attempt(called, err)
		}
		unknown, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "no-such-tool-at-all", Arguments: map[string]any{}})
		said["unknown"] = attempt(unknown, err)
	}
	if opened.Capabilities.Prompts != nil {
		prompts, err := session.ListPrompts(ctx, nil)
		said["prompts"] = attempt(prompts, err)
	}
	if opened.Capabilities.Resources != nil {
		resources, err := session.ListResources(ctx, nil)
		said["resources"] = attempt(resources, err)
	}
	return said, nil
}

func main() {
	var asked request
	if err := json.Unmarshal([]byte(os.Args[len(os.Args)-1]), &asked); err != nil {
		panic(err)
	}
	said, err := run(asked)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		panic(err)
	}
}
