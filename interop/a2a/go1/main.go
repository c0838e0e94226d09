// The Go SDK 1.x over JSON-RPC and over HTTP+JSON: every operation a peer uses, a line of JSON for each case.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
)

var long = strings.Repeat("0123456789", 1000)

type bearer struct{}

func (bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+os.Getenv("A2A_TOKEN"))
	return http.DefaultTransport.RoundTrip(request)
}

func open(ctx context.Context, binding a2a.TransportProtocol) (*a2aclient.Client, *a2a.AgentCard, error) {
	client := &http.Client{Transport: bearer{}}
	card, err := agentcard.NewResolver(client).Resolve(ctx, os.Getenv("A2A_URL"))
	if err != nil {
		return nil, nil, err
	}
	transport := a2aclient.WithJSONRPCTransport(client)
	if binding == a2a.TransportProtocolHTTPJSON {
		transport = a2aclient.WithRESTTransport(client)
	}
	made, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithDefaultsDisabled(), transport)
	return made, card, err
}

func sending(task a2a.TaskID, part *a2a.Part) *a2a.SendMessageRequest {
	message := a2a.NewMessage(a2a.MessageRoleUser, part)
	message.TaskID = task
	return &a2a.SendMessageRequest{Message: message}
}

func texts(parts a2a.ContentParts) string {
	said := ""
	for _, part := range parts {
		said += part.Text()
	}
	return said
}

// heard is what a stream said: the text of its updates, and its last state with the message and the task it belongs to.
type heard struct {
	text    string
	state   a2a.TaskState
	message *a2a.Message
	task    a2a.TaskID
}

func streamed(ctx context.Context, client *a2aclient.Client, params *a2a.SendMessageRequest) (heard, error) {
	var came heard
	for event, err := range client.SendStreamingMessage(ctx, params) {
		if err != nil {
			return came, err
		}
		switch said := event.(type) {
		case *a2a.Task:
			came.task = said.ID
		case *a2a.TaskArtifactUpdateEvent:
			came.text += texts(said.Artifact.Parts)
		case *a2a.TaskStatusUpdateEvent:
			came.state, came.message = said.Status.State, said.Status.Message
		}
	}
	return came, nil
}

func equal[T comparable](what string, got, wanted T) error {
	if got == wanted {
		return nil
	}
	return fmt.Errorf("%s: got %.200v, not %.200v", what, got, wanted)
}

func sent(text, wanted string) func(context.Context, *a2aclient.Client) error {
	return func(ctx context.Context, client *a2aclient.Client) error {
		result, err := client.SendMessage(ctx, sending("", a2a.NewTextPart(text)))
		if err != nil {
			return err
		}
		task, ok := result.(*a2a.Task)
		if !ok || len(task.Artifacts) != 1 {
			return fmt.Errorf("not a task with one artifact: %.200v", result)
		}
		return equal("answer", texts(task.Artifacts[0].Parts), wanted)
	}
}

func stream(text, wanted string) func(context.Context, *a2aclient.Client) error {
	return func(ctx context.Context, client *a2aclient.Client) error {
		came, err := streamed(ctx, client, sending("", a2a.NewTextPart(text)))
		if err != nil {
			return err
		}
		if err := equal("state", came.state, a2a.TaskStateCompleted); err != nil {
			return err
		}
		return equal("all updates joined", came.text, wanted)
	}
}

func asked(text string, answer func(*a2a.Message) *a2a.Part, wanted string) func(context.Context, *a2aclient.Client) error {
	return func(ctx context.Context, client *a2aclient.Client) error {
		first, err := streamed(ctx, client, sending("", a2a.NewTextPart(text)))
		if err != nil {
			return err
		}
		if err := equal("state", first.state, a2a.TaskStateInputRequired); err != nil {
			return err
		}
		second, err := streamed(ctx, client, sending(first.task, answer(first.message)))
		if err != nil {
			return err
		}
		return equal("answer", second.text, wanted)
	}
}

func approve(message *a2a.Message) *a2a.Part {
	for _, part := range message.Parts {
		if data, ok := part.Data().(map[string]any); ok {
			return a2a.NewDataPart(data["answer"])
		}
	}
	return a2a.NewTextPart("there is nothing to answer")
}

// begun starts work that goes on until it is canceled.
func begun(ctx context.Context, client *a2aclient.Client) (a2a.TaskID, error) {
	for event, err := range client.SendStreamingMessage(ctx, sending("", a2a.NewTextPart("slow"))) {
		if err != nil {
			return "", err
		}
		if task, ok := event.(*a2a.Task); ok {
			return task.ID, nil
		}
	}
	return "", fmt.Errorf("no task came")
}

func cancel(ctx context.Context, client *a2aclient.Client) error {
	id, err := begun(ctx, client)
	if err != nil {
		return err
	}
	task, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id})
	if err != nil {
		return err
	}
	return equal("state", task.Status.State, a2a.TaskStateCanceled)
}

func resubscribe(ctx context.Context, client *a2aclient.Client) error {
	id, err := begun(ctx, client)
	if err != nil {
		return err
	}
	var last a2a.TaskState
	for event, err := range client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: id}) {
		if err != nil {
			return err
		}
		switch said := event.(type) {
		case *a2a.Task:
			if _, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id}); err != nil {
				return err
			}
		case *a2a.TaskStatusUpdateEvent:
			last = said.Status.State
		}
	}
	return equal("last state", last, a2a.TaskStateCanceled)
}

func push(ctx context.Context, client *a2aclient.Client) error {
	came := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		came <- string(body)
	}))
	defer hook.Close()
	id, err := begun(ctx, client)
	if err != nil {
		return err
	}
	if _, err := client.CreateTaskPushConfig(ctx, &a2a.PushConfig{TaskID: id, URL: hook.URL}); err != nil {
		return err
	}
	if _, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id}); err != nil {
		return err
	}
	for {
		select {
		case body := <-came:
			if strings.Contains(body, "CANCELED") {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func main() {
	for _, binding := range []a2a.TransportProtocol{a2a.TransportProtocolJSONRPC, a2a.TransportProtocolHTTPJSON} {
		for _, each := range cases {
			report(binding, each.name, each.run)
		}
	}
}

func blue(*a2a.Message) *a2a.Part { return a2a.NewTextPart("blue") }

var cases = []struct {
	name string
	run  func(context.Context, *a2aclient.Client) error
}{
	{"card", nil},
	{"send", sent("hello", "You said hello.")},
	{"stream", stream("hello", "You said hello.")},
	{"long", sent("long", long)},
	{"long stream", stream("long", long)},
	{"approval", asked("approve", approve, "Published.")},
	{"input", asked("ask", blue, "You chose blue.")},
	{"cancel", cancel},
	{"resubscribe", resubscribe},
	{"push", push},
}

func report(binding a2a.TransportProtocol, name string, run func(context.Context, *a2aclient.Client) error) {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	client, card, err := open(ctx, binding)
	if err == nil && run != nil {
		err = run(ctx, client)
	} else if err == nil {
		err = equal("name", card.Name, "peer")
	}
	line := fmt.Sprintf(`{"case":"%s %s","ok":%t`, binding, name, err == nil)
	if err != nil {
		why, _ := json.Marshal(err.Error())
		line += `,"why":` + string(why)
	}
	fmt.Println(line + "}")
}
