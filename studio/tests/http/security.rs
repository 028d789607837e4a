//! A test for each sentence about security.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::site::Site;

#[tokio::test]
async fn healthz_answers_and_an_unknown_page_is_404() {
    let site = Site::new().await;
    let health = site.get("/healthz").await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    let missing = site.get("/nothing-here").await;
    assert_eq!(missing.status, 404);
    assert!(
        missing.body.contains("There is no page at this address."),
        "{}",
        missing.body
    );
}

#[tokio::test]
async fn a_foreign_host_is_refused_on_every_route_before_routing() {
    let site = Site::new().await;
    for path in ["/", "/healthz", "/live", "/assets/x/y", "/nothing-here"] {
        for host in ["evil.example", "127.0.0.1.evil.example", "evil.example:7070"] {
            let reply = site.send(&format!("GET {path} HTTP/1.1\nHost: {host}")).await;
            assert_eq!(reply.status, 421, "{path} {host}");
            assert!(!reply.body.contains("<html"), "{path} {host}");
        }
        for named in ["", "Host: localhost\nHost: evil.example"] {
            let reply = site.send(&format!("GET {path} HTTP/1.1\n{named}")).await;
            assert!([400, 421].contains(&reply.status), "{path}: {}", reply.status);
        }
    }
    let local = site.send("GET /healthz HTTP/1.1\nHost: localhost:1").await;
    assert_eq!(local.status, 200);
}

#[tokio::test]
async fn a_cross_site_post_is_refused_and_one_of_this_site_is_not() {
    let site = Site::new().await;
    let post = async |headers: &str| {
        let head = format!(
            "POST / HTTP/1.1\nHost: {}\nContent-Length: 0\n{headers}",
            site.address
        );
        site.send(&head).await.status
    };
    assert_eq!(post("Sec-Fetch-Site: cross-site").await, 403);
    assert_eq!(post("Sec-Fetch-Site: same-site").await, 403);
    assert_eq!(post("Origin: https://evil.example").await, 403);
    assert_eq!(post("Origin: null").await, 403);
    // This page takes no POST, which only a request that passes is told.
    assert_eq!(post("Sec-Fetch-Site: same-origin").await, 405);
    assert_eq!(post(&format!("Origin: http://{}", site.address)).await, 405);
}

#[tokio::test]
async fn every_reply_has_the_headers_refusals_too() {
    let site = Site::new().await;
    let replies = [
        site.get("/").await,
        site.get("/healthz").await,
        site.get("/nothing-here").await,
        site.send("GET / HTTP/1.1\nHost: evil.example").await,
    ];
    for reply in replies {
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(reply.head.contains(header), "{header} in {}", reply.head);
        }
        assert!(!reply.head.contains("unsafe"), "{}", reply.head);
    }
}

#[tokio::test]
async fn a_page_names_only_files_of_this_site_and_they_may_be_kept() {
    let site = Site::new().await;
    let page = site.get("/").await.body;
    let named = page
        .split(['"', '\''])
        .filter(|text| text.starts_with("/assets/"));
    let files: Vec<&str> = named.collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let reply = site.get(file).await;
        assert_eq!(reply.status, 200, "{file}");
        assert!(reply.head.contains("immutable"), "{file}");
    }
    assert_eq!(site.get("/assets/000000000000/style.css").await.status, 404);
    // No browser requests the name space of SVG.
    let others = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!others.contains("://"), "{others}");
    assert!(
        !others.contains(" style="),
        "an inline style is refused by the policy"
    );
    assert!(
        !others.contains("<script>"),
        "an inline script is refused by the policy"
    );
}

#[tokio::test]
async fn the_server_ends_within_two_seconds_with_streams_and_connections_open() {
    let site = Site::new().await;
    let mut streams = Vec::new();
    for path in ["/live", "/live", "/live", "/live", "/live", "/live", "/healthz"] {
        let mut stream = site
            .open(&format!("GET {path} HTTP/1.1\nHost: {}", site.address))
            .await;
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        streams.push(stream);
    }
    let began = Instant::now();
    site.ending.cancel();
    site.serving.await.unwrap().unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn more_streams_than_the_limit_are_refused() {
    let site = Site::new().await;
    let mut streams = Vec::new();
    let open = async || {
        let mut status = [0; 12];
        let mut stream = site
            .open(&format!("GET /live HTTP/1.1\nHost: {}", site.address))
            .await;
        stream.read_exact(&mut status).await.unwrap();
        (stream, String::from_utf8_lossy(&status).into_owned())
    };
    for _ in 0..64 {
        let (stream, said) = open().await;
        assert_eq!(said, "HTTP/1.1 200");
        streams.push(stream);
    }
    assert_eq!(open().await.1, "HTTP/1.1 429");
}

/// The clock is moved on while everything waits.
#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_arrive_is_ended() {
    let site = Site::new().await;
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nAccept", site.address);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    assert!(!reply.starts_with(b"HTTP/1.1 200"));
    for path in ["/play/tables", "/healthz", "/nothing-here"] {
        let head = format!("POST {path} HTTP/1.1\nHost: {}\nContent-Length: 10", site.address);
        assert_eq!(site.send(&head).await.status, 408, "{path}");
    }
}
