import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import io.a2a.client.Client;
import io.a2a.client.ClientEvent;
import io.a2a.client.TaskEvent;
import io.a2a.client.TaskUpdateEvent;
import io.a2a.client.config.ClientConfig;
import io.a2a.client.http.A2ACardResolver;
import io.a2a.client.transport.jsonrpc.JSONRPCTransport;
import io.a2a.client.transport.jsonrpc.JSONRPCTransportConfig;
import io.a2a.client.transport.spi.interceptors.ClientCallContext;
import io.a2a.spec.AgentCard;
import io.a2a.spec.DataPart;
import io.a2a.spec.Message;
import io.a2a.spec.Part;
import io.a2a.spec.PushNotificationConfig;
import io.a2a.spec.Task;
import io.a2a.spec.TaskArtifactUpdateEvent;
import io.a2a.spec.TaskIdParams;
import io.a2a.spec.TaskPushNotificationConfig;
import io.a2a.spec.TaskState;
import io.a2a.spec.TaskStatusUpdateEvent;
import io.a2a.spec.TextPart;
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

/** The Java SDK 0.3 over JSON-RPC: every operation a peer uses, a line of JSON for each case. */
public class Main {
  private static final String LONG = "0123456789".repeat(1000);
  private static final ClientCallContext CALL =
      new ClientCallContext(Map.of(), Map.of("Authorization", "Bearer " + System.getenv("A2A_TOKEN")));

  interface Case {
    void run() throws Exception;
  }

  /** What a stream said so far; `turn` ends with the state at which the agent has no more to say for now. */
  static final class Heard {
    final StringBuilder text = new StringBuilder();
    final CompletableFuture<String> task = new CompletableFuture<>();
    final CompletableFuture<Task> turn = new CompletableFuture<>();

    void event(ClientEvent event, AgentCard card) {
      if (event instanceof TaskEvent begun) {
        task.complete(begun.getTask().getId());
      } else if (event instanceof TaskUpdateEvent update) {
        if (update.getUpdateEvent() instanceof TaskArtifactUpdateEvent artifact) {
          text.append(texts(artifact.getArtifact().parts()));
        } else if (update.getUpdateEvent() instanceof TaskStatusUpdateEvent status && status.isFinal()) {
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
    return new A2ACardResolver(System.getenv("A2A_URL")).getAgentCard();
  }

  static Client client(boolean streaming) throws Exception {
    return Client.builder(card())
        .clientConfig(new ClientConfig.Builder().setStreaming(streaming).build())
        .withTransport(JSONRPCTransport.class, new JSONRPCTransportConfig())
        .build();
  }

  static Message sending(String task, Part<?> part) {
    return new Message.Builder().role(Message.Role.USER).taskId(task).parts(part).build();
  }

  static Heard streamed(Client client, Message message) throws Exception {
    Heard heard = new Heard();
    client.sendMessage(message, List.of(heard::event), heard::error, CALL);
    return heard;
  }

  static String texts(List<Part<?>> parts) {
    return parts.stream()
        .map(part -> part instanceof TextPart text ? text.getText() : "")
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
    return () -> {
      CompletableFuture<Task> came = new CompletableFuture<>();
      client(false)
          .sendMessage(
              sending(null, new TextPart(text)),
              List.of((event, card) -> came.complete(((TaskEvent) event).getTask())),
              came::completeExceptionally,
              CALL);
      Task task = came.get(30, TimeUnit.SECONDS);
      equal("artifacts", task.getArtifacts().size(), 1);
      equal("answer", texts(task.getArtifacts().get(0).parts()), wanted);
    };
  }

  static Case stream(String text, String wanted) {
    return () -> {
      Heard heard = streamed(client(true), sending(null, new TextPart(text)));
      Task task = heard.ended();
      equal("state", task.getStatus().state(), TaskState.COMPLETED);
      equal("all updates joined", heard.text.toString(), wanted);
      equal("the task the SDK keeps", texts(task.getArtifacts().get(0).parts()), wanted);
    };
  }

  static Case asked(String text, Function<Message, Part<?>> answer, String wanted) {
    return () -> {
      Client client = client(true);
      Task waiting = streamed(client, sending(null, new TextPart(text))).ended();
      equal("state", waiting.getStatus().state(), TaskState.INPUT_REQUIRED);
      Heard second = streamed(client, sending(waiting.getId(), answer.apply(waiting.getStatus().message())));
      equal("state after the answer", second.ended().getStatus().state(), TaskState.COMPLETED);
      equal("answer", second.text.toString(), wanted);
    };
  }

  @SuppressWarnings("unchecked")
  static Part<?> approve(Message question) {
    for (Part<?> part : question.getParts()) {
      if (part instanceof DataPart data) return new DataPart((Map<String, Object>) data.getData().get("answer"));
    }
    return new TextPart("there is nothing to answer");
  }

  /** Starts work that goes on until it is canceled. */
  static String begun(Client client) throws Exception {
    return streamed(client, sending(null, new TextPart("slow"))).task.get(30, TimeUnit.SECONDS);
  }

  static void cancel(Client client, String id) throws Exception {
    equal("state", client.cancelTask(new TaskIdParams(id), CALL).getStatus().state(), TaskState.CANCELED);
  }

  static void resubscribe() throws Exception {
    Client client = client(true);
    String id = begun(client);
    Heard heard = new Heard();
    client.resubscribe(new TaskIdParams(id), List.of(heard::event), heard::error, CALL);
    heard.task.get(30, TimeUnit.SECONDS);
    cancel(client, id);
    equal("last state", heard.ended().getStatus().state(), TaskState.CANCELED);
  }

  static void push() throws Exception {
    BlockingQueue<String> came = new LinkedBlockingQueue<>();
    HttpServer hook = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    hook.createContext("/", exchange -> {
      came.add(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
      exchange.sendResponseHeaders(200, -1);
      exchange.close();
    });
    hook.start();
    try {
      Client client = client(true);
      String id = begun(client);
      String url = "http://127.0.0.1:" + hook.getAddress().getPort() + "/";
      PushNotificationConfig config = new PushNotificationConfig.Builder().url(url).build();
      client.setTaskPushNotificationConfiguration(new TaskPushNotificationConfig(id, config), CALL);
      cancel(client, id);
      for (String body = ""; !body.contains("canceled"); ) {
        body = came.poll(10, TimeUnit.SECONDS);
        if (body == null) throw new AssertionError("no notification said that it was canceled");
      }
    } finally {
      hook.stop(0);
    }
  }

  public static void main(String[] args) throws Exception {
    Map<String, Case> cases = new LinkedHashMap<>();
    cases.put("card", () -> equal("name", card().name(), "peer"));
    cases.put("send", sent("hello", "You said hello."));
    cases.put("stream", stream("hello", "You said hello."));
    cases.put("long", sent("long", LONG));
    cases.put("long stream", stream("long", LONG));
    cases.put("approval", asked("approve", Main::approve, "Published."));
    cases.put("input", asked("ask", question -> new TextPart("blue"), "You chose blue."));
    cases.put("cancel", () -> {
      Client client = client(true);
      cancel(client, begun(client));
    });
    cases.put("resubscribe", Main::resubscribe);
    cases.put("push", Main::push);
    for (Map.Entry<String, Case> each : cases.entrySet()) {
      Map<String, Object> report = new LinkedHashMap<>(Map.of("case", each.getKey()));
      try {
        each.getValue().run();
        report.put("ok", true);
      } catch (Throwable thrown) {
        report.put("ok", false);
        report.put("why", shortened(thrown));
        thrown.printStackTrace();
      }
      System.out.println(new ObjectMapper().writeValueAsString(report));
    }
    // The SDK's own threads go on.
    System.exit(0);
  }
}
