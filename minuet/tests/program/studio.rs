//! `minuet studio` without a run: random games of every game over HTTP, which `minuet rules` repeats.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
};

use games::{
    Notation,
    registry::{self, Visitor},
};
use serde_json::{Value, json};

use crate::support::program::{Killed, answered, minuet};

/// Moves of each game.
const MOVES: usize = 24;

struct Studio {
    _process: Killed,
    address: String,
}

impl Studio {
    fn start() -> Self {
        let process = minuet("studio").stdout(Stdio::piped()).spawn();
        let mut process = Killed(process.unwrap());
        let mut line = String::new();
        let mut output = BufReader::new(process.0.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/');
        Self {
            address: address.into(),
            _process: process,
        }
    }

    fn ask(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{head}\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn json(&self, head: &str, body: &str) -> Value {
        let mut text = String::new();
        let head = format!("{head} HTTP/1.1\r\nContent-Type: application/json\r\nConnection: close");
        self.ask(&head, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{text}");
        serde_json::from_str(body).unwrap()
    }
}

/// Plays random offers of a table, and compares with the rules at the end.
struct Random<'a>(&'a Studio);

impl Visitor for Random<'_> {
    type Output = ();

    fn visit<G: Notation>(self) {
        let Self(studio) = self;
        let opened = studio.json(
            "POST /play/tables",
            &json!({ "game": G::NAME, "side": "both", "seed": 7 }).to_string(),
        );
        let table = format!("/play/tables/{}", opened["table"].as_str().unwrap());
        let stream = studio.ask(&format!("GET {table}/events HTTP/1.1"), "");
        let mut events = BufReader::new(stream)
            .lines()
            .map(Result::unwrap)
            .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let (mut offers, mut position, mut at) = (Vec::new(), String::new(), 0);
        let mut random = 12_345_u64;
        for played in 0..=MOVES {
            for event in events.by_ref() {
                if let Some(fresh) = event["offers"].as_array() {
                    offers.clone_from(fresh);
                }
                if let Some(text) = event["slots"]["position"].as_str() {
                    position = text
                        .replace("<code>", "")
                        .replace("</code>", "")
                        .replace("&quot;", "\"");
                }
                if event["flags"]["at"] == at {
                    break;
                }
            }
            if played == MOVES || offers.is_empty() {
                break;
            }
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let offer = &offers[(random >> 33) as usize % offers.len()];
            let command = json!({ "do": "play", "actions": offer["actions"], "at": at });
            at += offer["actions"].as_array().unwrap().len();
            studio.json(&format!("POST {table}"), &command.to_string());
        }
        let record = studio.json(&format!("GET {table}/record"), "");
        assert_eq!(record["actions"].as_array().unwrap().len(), at);
        let answer: Value =
            serde_json::from_str(&answered(&mut minuet("rules"), format!("{record}\n")).out).unwrap();
        assert_eq!(answer["error"], Value::Null, "{record}");
        assert_eq!(answer["fen"], Value::from(position), "{}", G::NAME);
        let state = replayed::<G>(&record);
        let mut first: Vec<Value> = offers
            .iter()
            .map(|offer| state.action_to_json(offer["actions"][0].as_u64().unwrap() as u32))
            .collect();
        first.dedup();
        let legal = answer["legal"].as_array().unwrap();
        assert_eq!(first.len(), legal.len(), "{}: {first:?} {legal:?}", G::NAME);
        assert!(legal.iter().all(|action| first.contains(action)));
    }
}

fn replayed<G: Notation>(record: &Value) -> G {
    let mut state = G::start(&G::people_rules(), record["start"].as_str()).unwrap();
    for action in record["actions"].as_array().unwrap() {
        state.play(state.action_from_json(action).unwrap()).unwrap();
    }
    state
}

#[test]
fn random_games_on_the_page_are_repeated_by_the_rules() {
    let studio = Studio::start();
    for name in registry::NAMES {
        registry::visit(name, Random(&studio)).unwrap();
    }
}
