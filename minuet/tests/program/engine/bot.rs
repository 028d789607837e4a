//! Runs the bot of docs/guide/analysis.md. Only the port is replaced, because a test takes a free one, and the program's path.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::program::{Killed, answered, minuet};

/// Posts a body and returns the status and the reply.
fn post(port: u16, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let length = body.len();
    write!(
        stream,
        "POST / HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let status = reply.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = reply.split_once("\r\n\r\n").unwrap();
    Some((status, serde_json::from_str(body).unwrap()))
}

#[test]
fn the_bot_of_the_guide_plays_paco_sako_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/guide/analysis.md")).unwrap();
    let script = page
        .split("```python\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert!(script.lines().filter(|line| !line.is_empty()).count() <= 40);
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (mut script, port_text) = (script.to_owned(), port.to_string());
    for (written, here) in [
        ("8080", &*port_text),
        ("target/release/minuet", env!("CARGO_BIN_EXE_minuet")),
    ] {
        assert_eq!(script.matches(written).count(), 1, "{written} in the example");
        script = script.replace(written, here);
    }
    let mut bot = Command::new("python3");
    let _bot = Killed(bot.args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(120);
    let mut moves: Vec<Value> = Vec::new();
    while moves.len() < 6 {
        let Some((status, reply)) = post(port, &json!({"moves": moves}).to_string()) else {
            assert!(Instant::now() < until, "the bot does not listen");
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        assert_eq!(status, 200, "{reply}");
        assert!((0.0..=1.0).contains(&reply["chances"].as_f64().unwrap()));
        moves.push(reply["turn"].clone());
    }
    // Another command reads the bot's turns and finds them legal.
    let mut query = minuet("query paco-sako --provider cpu --json");
    let turns = moves.iter().map(|turn| turn.as_str().unwrap());
    let seen = answered(query.args(turns), "");
    assert_eq!(seen.code, Some(0), "{moves:?}: {}", seen.error);
    let (status, reply) = post(port, r#"{"moves": ["e2 e5"]}"#).unwrap();
    assert_eq!(status, 400);
    assert!(
        reply["error"].as_str().unwrap().starts_with("moves[0]"),
        "{reply}"
    );
    assert_eq!(post(port, "moves").unwrap().0, 400);
}
