//! Tests of the limits of a connection policy.

use std::time::Duration;

use config::{Plaintext, SecurityConfig};
use service::{listener::ConnectionPolicy, serve};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use crate::{NAME, TIMEOUT, any_token, behind, plain, serve_with_policy};

/// HTTP/2's preface and an empty frame of settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Sends only `greeting`; true if the server then closes the connection.
async fn is_closed(address: &str, greeting: &[u8]) -> bool {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(greeting).await.unwrap();
    let mut bytes = Vec::new();
    // The bytes before the end (the server's settings) do not matter, nor does an error at the end.
    tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut bytes))
        .await
        .is_ok()
}

#[tokio::test]
async fn plaintext_for_other_machines_needs_a_setting() {
    let serve_with = async |plaintext| {
        let security = SecurityConfig {
            plaintext,
            ..SecurityConfig::default()
        };
        let policy = ConnectionPolicy::new(&security, any_token).unwrap();
        let listener = serve::listen("0.0.0.0:0").await.unwrap();
        let (routes, health) = serve::standard_routes(&[], &[]).await.unwrap();
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        serve::serve_with(policy, routes, listener, health, shutdown, Duration::ZERO).await
    };
    let refused = serve_with(Plaintext::Loopback).await.unwrap_err();
    assert!(refused.to_string().contains("security.certificate"), "{refused}");
    assert!(serve_with(Plaintext::Anywhere).await.is_ok());
}

#[tokio::test]
async fn a_client_without_a_complete_preface_is_disconnected() {
    let mut policy = plain();
    policy.preface_time = Duration::from_millis(20);
    let server = serve_with_policy(policy, NAME).await;
    assert!(is_closed(&server.address, b"").await);
    assert!(is_closed(&server.address, b"PRI * HTTP/2.0\r\n").await);
    assert!(is_closed(&server.address, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await);
}

#[tokio::test]
async fn a_client_with_a_complete_preface_stays_connected() {
    let limit = Duration::from_secs(3);
    let mut policy = plain();
    policy.preface_time = limit;
    let server = serve_with_policy(policy, NAME).await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    // The server sends its settings, then nothing more, and does not close the connection.
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    let mut rest = vec![0; 4096];
    let quiet = async { while stream.read(&mut rest).await.unwrap() > 0 {} };
    assert!(
        tokio::time::timeout(limit + Duration::from_millis(300), quiet)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn connections_are_limited_in_all_and_of_each_peer_and_a_closed_one_frees_its_slot() {
    let security = SecurityConfig {
        max_connections: 3,
        max_connections_per_peer: 2,
        ..SecurityConfig::default()
    };
    let server = behind(&security, NAME).await;
    let address = server.address.parse().unwrap();
    let connect_from = async |peer: &str| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{peer}:0").parse().unwrap()).unwrap();
        socket.connect(address).await.unwrap()
    };
    let is_served = async |stream: &mut TcpStream| {
        // A connection that was closed may refuse the bytes.
        let _ = stream.write_all(PREFACE).await;
        let read = tokio::time::timeout(TIMEOUT, stream.read(&mut [0; 9]))
            .await
            .unwrap();
        read.is_ok_and(|bytes| bytes > 0)
    };
    let mut held = vec![connect_from("127.0.0.1").await, connect_from("127.0.0.1").await];
    for stream in &mut held {
        assert!(is_served(stream).await);
    }
    assert!(!is_served(&mut connect_from("127.0.0.1").await).await);
    let mut other = connect_from("127.0.0.2").await;
    assert!(is_served(&mut other).await);
    assert!(!is_served(&mut connect_from("127.0.0.3").await).await);
    held.pop();
    let again = async { while !is_served(&mut connect_from("127.0.0.3").await).await {} };
    tokio::time::timeout(TIMEOUT, again).await.unwrap();
}
