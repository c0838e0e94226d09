//! The Rust SDK over JSON-RPC and over HTTP+JSON: every operation a peer uses, a line of JSON for each case.

use std::sync::Arc;
use std::time::Duration;

use a2a::{
    AgentCard, CancelTaskRequest, Message, Part, PartContent, Role, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, TaskPushNotificationConfig, TaskState, TRANSPORT_PROTOCOL_HTTP_JSON,
    TRANSPORT_PROTOCOL_JSONRPC,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::auth::AuthInterceptor;
use a2a_client::{A2AClient, A2AClientFactory, BoxStream, Transport};
use futures::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

type Outcome<T = ()> = Result<T, String>;
type Client = A2AClient<Box<dyn Transport>>;
type Events = BoxStream<'static, Result<StreamResponse, a2a::A2AError>>;

const CASES: [&str; 10] =
    ["card", "send", "stream", "long", "long stream", "approval", "input", "cancel", "resubscribe", "push"];

/// What a stream said: the text of its updates, and its last state with the message and the task it belongs to.
#[derive(Default)]
struct Heard {
    text: String,
    state: TaskState,
    message: Option<Message>,
    task: String,
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn failed(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Outcome {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{what}: got {:.200}, not {:.200}", format!("{got:?}"), format!("{wanted:?}")))
}

async fn open(binding: &str) -> Outcome<(Client, AgentCard)> {
    let card = AgentCardResolver::new(None).resolve(&variable("A2A_URL")).await.map_err(failed)?;
    let client = A2AClientFactory::builder()
        .preferred_bindings(vec![binding.to_string()])
        .with_interceptor(Arc::new(AuthInterceptor::bearer(variable("A2A_TOKEN"))))
        .build()
        .create_from_card(&card)
        .await
        .map_err(failed)?;
    Ok((client, card))
}

fn sending(task: Option<String>, part: Part) -> SendMessageRequest {
    let mut message = Message::new(Role::User, vec![part]);
    message.task_id = task;
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

fn texts(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}

async fn heard(mut events: Events) -> Outcome<Heard> {
    let mut came = Heard::default();
    while let Some(event) = events.next().await {
        match event.map_err(failed)? {
            StreamResponse::Task(task) => came.task = task.id,
            StreamResponse::ArtifactUpdate(update) => came.text += &texts(&update.artifact.parts),
            StreamResponse::StatusUpdate(update) => (came.state, came.message) = (update.status.state, update.status.message),
            StreamResponse::Message(_) => return Err("a message came instead of a task".into()),
        }
    }
    Ok(came)
}

async fn streamed(client: &Client, request: SendMessageRequest) -> Outcome<Heard> {
    heard(client.send_streaming_message(&request).await.map_err(failed)?).await
}

async fn sent(client: &Client, text: &str, wanted: &str) -> Outcome {
    match client.send_message(&sending(None, Part::text(text))).await.map_err(failed)? {
        SendMessageResponse::Task(task) => {
            let artifacts = task.artifacts.unwrap_or_default();
            equal("artifacts", artifacts.len(), 1)?;
            equal("answer", texts(&artifacts[0].parts).as_str(), wanted)
        }
        SendMessageResponse::Message(_) => Err("a message came instead of a task".into()),
    }
}

async fn stream(client: &Client, text: &str, wanted: &str) -> Outcome {
    let came = streamed(client, sending(None, Part::text(text))).await?;
    equal("state", came.state, TaskState::Completed)?;
    equal("all updates joined", came.text.as_str(), wanted)
}

async fn asked(client: &Client, text: &str, answer: impl Fn(Message) -> Part, wanted: &str) -> Outcome {
    let first = streamed(client, sending(None, Part::text(text))).await?;
    equal("state", first.state, TaskState::InputRequired)?;
    let question = first.message.ok_or("it asks without a message")?;
    let second = streamed(client, sending(Some(first.task), answer(question))).await?;
    equal("answer", second.text.as_str(), wanted)
}

fn approve(question: Message) -> Part {
    let data = question.parts.into_iter().find_map(|part| match part.content {
        PartContent::Data(data) => Some(data["answer"].clone()),
        _ => None,
    });
    data.map_or_else(|| Part::text("there is nothing to answer"), Part::data)
}

/// Starts work that goes on until it is canceled.
async fn begun(client: &Client) -> Outcome<String> {
    let request = sending(None, Part::text("slow"));
    let mut events = client.send_streaming_message(&request).await.map_err(failed)?;
    while let Some(event) = events.next().await {
        if let StreamResponse::Task(task) = event.map_err(failed)? {
            return Ok(task.id);
        }
    }
    Err("no task came".into())
}

async fn canceled(client: &Client, id: &str) -> Outcome {
    let request = CancelTaskRequest { id: id.into(), metadata: None, tenant: None };
    let task = client.cancel_task(&request).await.map_err(failed)?;
    equal("state", task.status.state, TaskState::Canceled)
}

async fn resubscribe(client: &Client) -> Outcome {
    let id = begun(client).await?;
    let request = SubscribeToTaskRequest { id: id.clone(), tenant: None };
    let mut events = client.subscribe_to_task(&request).await.map_err(failed)?;
    let mut last = TaskState::default();
    while let Some(event) = events.next().await {
        match event.map_err(failed)? {
            StreamResponse::Task(_) => canceled(client, &id).await?,
            StreamResponse::StatusUpdate(update) => last = update.status.state,
            _ => {}
        }
    }
    equal("last state", last, TaskState::Canceled)
}

async fn push(client: &Client) -> Outcome {
    let hook = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
    let url = format!("http://{}/", hook.local_addr().map_err(failed)?);
    let id = begun(client).await?;
    let config =
        TaskPushNotificationConfig { url, id: None, task_id: id.clone(), token: None, authentication: None, tenant: None };
    client.create_push_config(&config).await.map_err(failed)?;
    let (gone, came) = tokio::join!(canceled(client, &id), notified(&hook));
    gone.and(came)
}

/// Answers what is posted, one connection after the other, until a body says that the work was canceled.
async fn notified(hook: &TcpListener) -> Outcome {
    loop {
        let (mut socket, _) = hook.accept().await.map_err(failed)?;
        let mut said = String::new();
        let mut bytes = [0u8; 65_536];
        while !whole(&said) {
            let read = socket.read(&mut bytes).await.map_err(failed)?;
            if read == 0 {
                break;
            }
            said += &String::from_utf8_lossy(&bytes[..read]);
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        socket.write_all(answer.as_bytes()).await.map_err(failed)?;
        if said.contains("CANCELED") {
            return Ok(());
        }
    }
}

fn whole(said: &str) -> bool {
    let Some((head, body)) = said.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

async fn run(binding: &str, case: &str) -> Outcome {
    let long = "0123456789".repeat(1000);
    let (client, card) = open(binding).await?;
    match case {
        "card" => equal("name", card.name.as_str(), "peer"),
        "send" => sent(&client, "hello", "You said hello.").await,
        "stream" => stream(&client, "hello", "You said hello.").await,
        "long" => sent(&client, "long", &long).await,
        "long stream" => stream(&client, "long", &long).await,
        "approval" => asked(&client, "approve", approve, "Published.").await,
        "input" => asked(&client, "ask", |_| Part::text("blue"), "You chose blue.").await,
        "cancel" => canceled(&client, &begun(&client).await?).await,
        "resubscribe" => resubscribe(&client).await,
        _ => push(&client).await,
    }
}

#[tokio::main]
async fn main() {
    for binding in [TRANSPORT_PROTOCOL_JSONRPC, TRANSPORT_PROTOCOL_HTTP_JSON] {
        for case in CASES {
            let late = Err("30 seconds were not enough".to_string());
            let outcome = tokio::time::timeout(Duration::from_secs(30), run(binding, case)).await.unwrap_or(late);
            let why = outcome.as_ref().err().map(|why| format!(r#","why":{}"#, serde_json::json!(why))).unwrap_or_default();
            println!(r#"{{"case":"{binding} {case}","ok":{}{why}}}"#, outcome.is_ok());
        }
    }
}
