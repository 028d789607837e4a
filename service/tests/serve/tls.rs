//! Tests of TLS and mutual TLS over real sockets, with valid and invalid certificates.

use config::SecurityConfig;
use service::connect;
use tonic::Code;

use crate::{NAME, any_token, behind, check, pki::Authority};

/// Makes one call as `client` and returns its result.
async fn ends(address: &str, client: &SecurityConfig) -> Result<(), (Code, String)> {
    let link = connect::link(address, client).unwrap();
    check(&link, NAME)
        .await
        .map_err(|status| (status.code(), format!("{status:?}")))
}

#[tokio::test]
async fn a_client_checks_the_servers_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let with = |(certificate, key)| SecurityConfig {
        certificate,
        key,
        ..SecurityConfig::default()
    };
    let trusting = |authority: &Authority, name: &str| SecurityConfig {
        ca: authority.write(folder, name),
        ..SecurityConfig::default()
    };
    let client = trusting(&ours, "ours.pem");

    let server = behind(&with(ours.sign(folder, "server", "127.0.0.1")), NAME).await;
    assert_eq!(ends(&server.address, &client).await, Ok(()));
    let (code, said) = ends(&server.address, &trusting(&theirs, "theirs.pem"))
        .await
        .unwrap_err();
    assert_eq!(code, Code::Unavailable);
    assert!(said.contains("UnknownIssuer"), "{said}");
    // A plaintext client fails, and does not disturb the server.
    assert!(ends(&server.address, &SecurityConfig::default()).await.is_err());
    assert_eq!(ends(&server.address, &client).await, Ok(()));

    let expired = behind(&with(ours.sign_until(folder, "expired", "127.0.0.1", 2020)), NAME).await;
    let (_, said) = ends(&expired.address, &client).await.unwrap_err();
    assert!(said.contains("Expired"), "{said}");

    let other_name = behind(&with(ours.sign(folder, "other", "inference")), NAME).await;
    let (_, said) = ends(&other_name.address, &client).await.unwrap_err();
    assert!(said.contains("NotValidForName"), "{said}");
    let by_name = SecurityConfig {
        server_name: "inference".into(),
        ..client.clone()
    };
    assert_eq!(ends(&other_name.address, &by_name).await, Ok(()));
}

#[tokio::test]
async fn a_server_checks_its_clients_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let ca = ours.write(folder, "ours.pem");
    let (certificate, key) = ours.sign(folder, "server", "127.0.0.1");
    let server = SecurityConfig {
        certificate,
        key,
        client_ca: ca.clone(),
        ..SecurityConfig::default()
    };
    let server = behind(&server, NAME).await;
    let showing = |(client_certificate, client_key)| SecurityConfig {
        ca: ca.clone(),
        client_certificate,
        client_key,
        ..SecurityConfig::default()
    };
    let right = showing(ours.sign(folder, "client", "actor"));
    assert_eq!(ends(&server.address, &right).await, Ok(()));
    let wrong = [
        showing(theirs.sign(folder, "stranger", "actor")),
        showing(ours.sign_until(folder, "late", "actor", 2020)),
        SecurityConfig {
            ca: ca.clone(),
            ..SecurityConfig::default()
        },
    ];
    for client in &wrong {
        assert!(ends(&server.address, client).await.is_err(), "{client:?}");
    }
    assert_eq!(ends(&server.address, &right).await, Ok(()));
}

#[tokio::test]
async fn errors_name_the_files_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ours = Authority::new("ours");
    let (certificate, key) = ours.sign(folder, "server", "127.0.0.1");
    let (_, other_key) = ours.sign(folder, "other", "127.0.0.1");
    let server = |certificate: &std::path::Path, key: &std::path::Path| {
        let config = SecurityConfig {
            certificate: certificate.into(),
            key: key.into(),
            ..SecurityConfig::default()
        };
        service::listener::ConnectionPolicy::new(&config, any_token)
            .unwrap_err()
            .to_string()
    };
    let missing = folder.join("missing");
    assert!(server(&missing, &key).contains("missing (security.certificate): No such file"));
    assert!(server(&key, &key).contains("no certificate in PEM form"));
    assert!(server(&certificate, &certificate).contains("no private key in PEM form"));
    assert!(server(&certificate, &other_key).contains("not the key of the certificate"));

    let client = SecurityConfig {
        ca: missing,
        ..SecurityConfig::default()
    };
    let refused = connect::link("127.0.0.1:1", &client).unwrap_err().to_string();
    assert!(refused.contains("(security.ca)"), "{refused}");
    let client = SecurityConfig {
        ca: ours.write(folder, "ours.pem"),
        client_certificate: certificate,
        client_key: other_key,
        ..SecurityConfig::default()
    };
    let refused = connect::link("127.0.0.1:1", &client).unwrap_err().to_string();
    assert!(
        refused.contains("certificates of [security] cannot be used"),
        "{refused}"
    );
}
