import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.a2aproject.sdk.client.Client;
import org.a2aproject.sdk.client.ClientEvent;
import org.a2aproject.sdk.client.TaskEvent;
import org.a2aproject.sdk.client.TaskUpdateEvent;
import org.a2aproject.sdk.client.config.ClientConfig;
import org.a2aproject.sdk.client.http.A2ACardResolver;
import org.a2aproject.sdk.client.transport.jsonrpc.JSONRPCTransport;
import org.a2aproject.sdk.client.transport.jsonrpc.JSONRPCTransportConfig;
import org.a2aproject.sdk.client.transport.rest.RestTransport;
import org.a2aproject.sdk.client.transport.rest.RestTransportConfig;
import org.a2aproject.sdk.client.transport.spi.interceptors.ClientCallContext;
import org.a2aproject.sdk.spec.AgentCard;
import org.a2aproject.sdk.spec.CancelTaskParams;
import org.a2aproject.sdk.spec.DataPart;
import org.a2aproject.sdk.spec.Message;
import org.a2aproject.sdk.spec.Part;
import org.a2aproject.sdk.spec.Task;
import org.a2aproject.sdk.spec.TaskArtifactUpdateEvent;
import org.a2aproject.sdk.spec.TaskIdParams;
import org.a2aproject.sdk.spec.TaskPushNotificationConfig;
import org.a2aproject.sdk.spec.TaskState;
import org.a2aproject.sdk.spec.TaskStatusUpdateEvent;
import org.a2aproject.sdk.spec.TextPart;

/** The Java SDK 1.x over JSON-RPC and over HTTP+JSON: every operation a peer uses, a line of JSON for each case. */
public class Main {
  private static final String LONG = "0123456789".repeat(1000);
  private static final ClientCallContext CALL =
      new ClientCallContext(Map.of(), Map.of("Authorization", "Bearer " + System.getenv("A2A_TOKEN")));

  interface Case {
    void run(Binding binding) throws Exception;
  }

  enum Binding {
    JSONRPC,
    HTTP_JSON;

    Client client(boolean streaming) throws Exception {
      var builder = Client.builder(card()).clientConfig(ClientConfig.builder().setStreaming(streaming).build());
      return switch (this) {
        case JSONRPC -> builder.withTransport(JSONRPCTransport.class, new JSONRPCTransportConfig()).build();
        case HTTP_JSON -> builder.withTransport(RestTransport.class, new RestTransportConfig()).build();
      };
    }
  }

  /** What a stream said so far; `turn` ends with the state at which the agent has no more to say for now. */
  static final class Heard {
    final StringBuilder text = new StringBuilder();
    final CompletableFuture<String> task = new CompletableFuture<>();
    final CompletableFuture<Task> turn = new CompletableFuture<>();

    void event(ClientEvent event, AgentCard card) {
      if (event instanceof TaskEvent begun) {
        task.complete(begun.getTask().id());
      } else if (event instanceof TaskUpdateEvent update) {
        if (update.getUpdateEvent() instanceof TaskArtifactUpdateEvent artifact) {
          text.append(texts(artifact.artifact().parts()));
        } else if (update.getUpdateEvent() instanceof TaskStatusUpdateEvent status && status.isFinalOrInterrupted()) {
          turn.complete(update.getTask());
        }
      }
    }

    void error(Throwable thrown) {
      // The SDK reports the end of a stream that it closes itself; by then the turn is over.
      if (thrown != null) turn.completeExceptionally(thrown);
    }

    Task ended() throws Exception {
      return turn.get(30, TimeUnit.SECONDS);
    }
  }

  static AgentCard card() throws Exception {
    return A2ACardResolver.builder().baseUrl(System.getenv("A2A_URL")).build().getAgentCard();
  }

  static Message sending(String task, Part<?> part) {
    return Message.builder().role(Message.Role.ROLE_USER).taskId(task).parts(part).build();
  }

  static Heard streamed(Client client, Message message) throws Exception {
    Heard heard = new Heard();
    client.sendMessage(message, List.of(heard::event), heard::error, CALL);
    return heard;
  }

  static String texts(List<Part<?>> parts) {
    return parts.stream()
        .map(part -> part instanceof TextPart text ? text.text() : "")
        .collect(Collectors.joining());
  }

  static void equal(String what, Object got, Object wanted) {
    if (!wanted.equals(got)) {
      throw new AssertionError(what + ": got " + shortened(got) + ", not " + shortened(wanted));
    }
  }

  static String shortened(Object value) {
    String text = String.valueOf(value);
    return text.substring(0, Math.min(200, text.length()));
  }

  static Case sent(String text, String wanted) {
    return binding -> {
      CompletableFuture<Task> came = new CompletableFuture<>();
      binding
          .client(false)
          .sendMessage(
              sending(null, new TextPart(text)),
              List.of((event, card) -> came.complete(((TaskEvent) event).getTask())),
              came::completeExceptionally,
              CALL);
      Task task = came.get(30, TimeUnit.SECONDS);
      equal("artifacts", task.artifacts().size(), 1);
      equal("answer", texts(task.artifacts().get(0).parts()), wanted);
    };
  }

  static Case stream(String text, String wanted) {
    return binding -> {
      Heard heard = streamed(binding.client(true), sending(null, new TextPart(text)));
      Task task = heard.ended();
      equal("state", task.status().state(), TaskState.TASK_STATE_COMPLETED);
      equal("all updates joined", heard.text.toString(), wanted);
      equal("the task the SDK keeps", texts(task.artifacts().get(0).parts()), wanted);
    };
  }

  static Case asked(String text, Function<Message, Part<?>> answer, String wanted) {
    return binding -> {
      Client client = binding.client(true);
      Task waiting = streamed(client, sending(null, new TextPart(text))).ended();
      equal("state", waiting.status().state(), TaskState.TASK_STATE_INPUT_REQUIRED);
      Heard second = streamed(client, sending(waiting.id(), answer.apply(waiting.status().message())));
      equal("state after the answer", second.ended().status().state(), TaskState.TASK_STATE_COMPLETED);
      equal("answer", second.text.toString(), wanted);
    };
  }

  static Part<?> approve(Message question) {
    for (Part<?> part : question.parts()) {
      if (part instanceof DataPart data) return new DataPart(((Map<?, ?>) data.data()).get("answer"));
    }
    return new TextPart("there is nothing to answer");
  }

  /** Starts work that goes on until it is canceled. */
  static String begun(Client client) throws Exception {
    return streamed(client, sending(null, new TextPart("slow"))).task.get(30, TimeUnit.SECONDS);
  }

  static void cancel(Client client, String id) throws Exception {
    Task task = client.cancelTask(CancelTaskParams.builder().id(id).build(), CALL);
    equal("state", task.status().state(), TaskState.TASK_STATE_CANCELED);
  }

  static void resubscribe(Binding binding) throws Exception {
    Client client = binding.client(true);
    String id = begun(client);
    Heard heard = new Heard();
    client.subscribeToTask(new TaskIdParams(id), List.of(heard::event), heard::error, CALL);
    heard.task.get(30, TimeUnit.SECONDS);
    cancel(client, id);
    equal("last state", heard.ended().status().state(), TaskState.TASK_STATE_CANCELED);
  }

  static void push(Binding binding) throws Exception {
    BlockingQueue<String> came = new LinkedBlockingQueue<>();
    HttpServer hook = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    hook.createContext("/", exchange -> {
      came.add(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
      exchange.sendResponseHeaders(200, -1);
      exchange.close();
    });
    hook.start();
    try {
      Client client = binding.client(true);
      String id = begun(client);
      String url = "http://127.0.0.1:" + hook.getAddress().getPort() + "/";
      TaskPushNotificationConfig config = TaskPushNotificationConfig.builder().id("").taskId(id).url(url).build();
      client.createTaskPushNotificationConfiguration(config, CALL);
      cancel(client, id);
      for (String body = ""; !body.contains("TASK_STATE_CANCELED"); ) {
        body = came.poll(10, TimeUnit.SECONDS);
        if (body == null) throw new AssertionError("no notification said that it was canceled");
      }
    } finally {
      hook.stop(0);
    }
  }

  static String quoted(String text) {
    return '"' + text.replaceAll("[\\\\\"\\p{Cntrl}]", " ") + '"';
  }

  public static void main(String[] args) {
    Map<String, Case> cases = new LinkedHashMap<>();
    cases.put("card", binding -> equal("name", card().name(), "peer"));
    cases.put("send", sent("hello", "You said hello."));
    cases.put("stream", stream("hello", "You said hello."));
    cases.put("long", sent("long", LONG));
    cases.put("long stream", stream("long", LONG));
    cases.put("approval", asked("approve", Main::approve, "Published."));
    cases.put("input", asked("ask", question -> new TextPart("blue"), "You chose blue."));
    cases.put("cancel", binding -> {
      Client client = binding.client(true);
      cancel(client, begun(client));
    });
    cases.put("resubscribe", Main::resubscribe);
    cases.put("push", Main::push);
    for (Binding binding : Binding.values()) {
      for (Map.Entry<String, Case> each : cases.entrySet()) {
        String name = quoted(binding + " " + each.getKey());
        String result = "true";
        try {
          each.getValue().run(binding);
        } catch (Throwable thrown) {
          result = "false,\"why\":" + quoted(shortened(thrown));
          thrown.printStackTrace();
        }
        System.out.println("{\"case\":" + name + ",\"ok\":" + result + "}");
      }
    }
    // The SDK's own threads go on.
    System.exit(0);
  }
}
