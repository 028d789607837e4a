//! Tests of secrets: what each role can read, and that `kubernetes/secrets.sh` makes what the roles need and no more.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
    time::Duration,
};

use config::SecurityConfig;
use k8s_openapi::api::core::v1::{KeyToPath, Secret};
use service::{
    connect,
    listener::ConnectionPolicy,
    security::{
        methods::{Access, Method},
        tokens::{Right, TokenDigest, Tokens},
    },
    serve,
};
use tokio_util::sync::CancellationToken;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    files::{EVERY_COMPONENT, OVERLAYS, documents, folder, rendered, succeeded},
    kubernetes::{Workload, resources, strictly, workloads},
    programs::load,
};

/// A secret and the keys of it that a pod can read; `None`: all of them, as environment variables.
type Readable = BTreeMap<String, Option<BTreeSet<String>>>;

/// Lists the secrets that a workload's pods can read. A way that this test does not know fails it.
fn readable(workload: &Workload, at: &str) -> Readable {
    let mut found = Readable::new();
    for volume in workload.pod.volumes.iter().flatten() {
        assert!(
            volume.projected.is_none() && volume.csi.is_none(),
            "{at}: {}",
            volume.name
        );
        if let Some(secret) = &volume.secret {
            let items = secret
                .items
                .as_ref()
                .unwrap_or_else(|| panic!("{at}: {} without items", volume.name));
            let keys = items.iter().map(|KeyToPath { key, .. }| key.clone()).collect();
            let before = found.insert(secret.secret_name.clone().unwrap(), Some(keys));
            assert!(before.is_none(), "{at}: a secret is mounted twice");
        }
    }
    let containers = workload
        .pod
        .containers
        .iter()
        .chain(workload.pod.init_containers.iter().flatten());
    for container in containers {
        for source in container.env_from.iter().flatten() {
            let secret = source.secret_ref.as_ref().expect(at);
            found.insert(secret.name.clone(), None);
        }
        for variable in container.env.iter().flatten() {
            let from = variable.value_from.as_ref();
            assert!(
                from.is_none_or(|from| from.secret_key_ref.is_none()),
                "{at}: {}",
                variable.name
            );
        }
    }
    found
}

/// A workload, its secret of the object store, and the others.
type Secrets = (&'static str, &'static str, Option<(&'static str, &'static str)>);

/// Secrets of each workload: that of the object store, and the name in those of the component `tls`, a certificate and a token or a
/// server's tokens.
const EXPECTED: [Secrets; 10] = [
    (
        "replay-store",
        "object-store-replay-store",
        Some(("replay-store", "tokens")),
    ),
    (
        "inference-server",
        "object-store-inference-server",
        Some(("inference-server", "tokens")),
    ),
    ("learner", "object-store-learner", Some(("learner", "token"))),
    ("actor", "", Some(("actor", "token"))),
    ("analysis", "", Some(("analysis", "tokens"))),
    ("studio", "object-store-studio", Some(("studio", "token"))),
    ("export-games", "object-store-backup", Some(("command", "token"))),
    ("import-games", "object-store-backup", Some(("command", "token"))),
    ("rating", "object-store-rating", None),
    ("object-store", "object-store", None),
];

/// Secrets of the component `tls` with this name, and the keys of each.
fn of_tls((name, token): (&str, &str)) -> [(String, Option<BTreeSet<String>>); 2] {
    let keys = |keys: &[&str]| Some(keys.iter().map(|&key| key.to_owned()).collect());
    [
        (
            format!("minuet-tls-{name}"),
            keys(&["ca.crt", "tls.crt", "tls.key"]),
        ),
        // The analysis service is a client of the inference servers.
        (
            format!("minuet-{token}-{name}"),
            if name == "analysis" {
                keys(&["token", "tokens"])
            } else {
                keys(&[token])
            },
        ),
    ]
}

#[test]
fn each_role_reads_its_own_secrets_and_no_others() {
    for overlay in OVERLAYS {
        let has_tls = ["production", EVERY_COMPONENT].contains(&overlay);
        for workload in workloads(overlay) {
            let at = format!("{overlay}: {}", workload.name);
            let (_, objects, secrets) = EXPECTED
                .into_iter()
                .find(|(name, ..)| *name == workload.name)
                .unwrap_or_else(|| panic!("{at}: which secrets?"));
            let mut expected = Readable::new();
            if !objects.is_empty() {
                expected.insert(objects.to_owned(), None);
            }
            expected.extend(secrets.filter(|_| has_tls).into_iter().flat_map(of_tls));
            let found: Readable = readable(&workload, &at)
                .into_iter()
                // kustomize adds a digest to the names of secrets that it makes.
                .map(|(name, keys)| match name.rsplit_once('-') {
                    Some((name, _)) if overlay == "local" => (name.to_owned(), keys),
                    _ => (name, keys),
                })
                .collect();
            assert_eq!(found, expected, "{at}");
        }
    }
    // Commands of jobs read their token where it is mounted.
    let command = load(&folder().join("kubernetes/components/tls/command.toml"), &[]);
    assert!(!command.security.token.as_os_str().is_empty());
}

/// Runs `kubernetes/secrets.sh` with a client outside the cluster.
fn make(into: &Path) {
    let script = folder().join("kubernetes/secrets.sh");
    let output = Command::new(&script).arg(into).arg("notebook").output().unwrap();
    succeeded(&output, &script);
}

#[test]
fn the_script_makes_the_secrets_that_the_roles_mount_and_servers_get_digests_only() {
    let home = tempfile::tempdir().unwrap();
    let made = home.path().join("secrets");
    make(&made);
    let text = std::fs::read_to_string(made.join("secrets.yaml")).unwrap();
    let secrets: BTreeMap<String, BTreeMap<String, Vec<u8>>> = documents(&text)
        .iter()
        .map(|document| {
            let secret: Secret = strictly(document).unwrap();
            let data = secret.data.unwrap().into_iter();
            (
                secret.metadata.name.unwrap(),
                data.map(|(key, bytes)| (key, bytes.0)).collect(),
            )
        })
        .collect();
    let mounted = EXPECTED.into_iter().filter_map(|(_, _, secrets)| secrets);
    let mounted: Readable = mounted.flat_map(of_tls).collect();
    let keys = |data: &BTreeMap<String, Vec<u8>>| Some(data.keys().cloned().collect());
    let found: Readable = secrets
        .iter()
        .map(|(name, data)| (name.clone(), keys(data)))
        .collect();
    assert_eq!(found, mounted);

    let token = |client: &str| std::fs::read_to_string(made.join(format!("{client}.token"))).unwrap();
    let rights = [
        ("inference-server", "actor", vec![Right::Evaluate]),
        ("inference-server", "notebook", vec![Right::Evaluate]),
        ("inference-server", "studio", vec![Right::Evaluate]),
        ("inference-server", "analysis", vec![Right::Evaluate]),
        ("inference-server", "learner", vec![]),
        ("analysis", "notebook", vec![Right::Analyze]),
        ("analysis", "command", vec![Right::Analyze]),
        ("analysis", "actor", vec![]),
        ("replay-store", "actor", vec![Right::Append]),
        ("replay-store", "learner", vec![Right::Sample]),
        ("replay-store", "studio", vec![Right::Sample]),
        ("replay-store", "command", vec![Right::Sample, Right::Append]),
        ("replay-store", "notebook", vec![]),
    ];
    for (server, client, granted) in rights {
        let lines = String::from_utf8(secrets[&format!("minuet-tokens-{server}")]["tokens"].clone()).unwrap();
        assert!(
            lines.lines().all(|line| line.contains(" sha256:")),
            "{server}: {lines}"
        );
        let tokens = Tokens::parse(&lines).unwrap();
        for right in [
            Right::Evaluate,
            Right::Analyze,
            Right::Append,
            Right::Sample,
            Right::Administer,
        ] {
            let may = tokens
                .holder(TokenDigest::of(&token(client)))
                .is_some_and(|holder| holder.may(right));
            assert_eq!(may, granted.contains(&right), "{server}: {client}: {right}");
        }
    }
}

#[tokio::test]
async fn a_role_can_connect_with_its_certificate_and_no_role_can_pose_as_a_server() {
    let home = tempfile::tempdir().unwrap();
    let made = home.path().join("secrets");
    make(&made);
    let file = |name: &str| made.join(name);
    let served = async |role: &str| {
        let security = SecurityConfig {
            certificate: file(&format!("{role}.crt")),
            key: file(&format!("{role}.key")),
            client_ca: file("ca.crt"),
            ..SecurityConfig::default()
        };
        let policy = ConnectionPolicy::new(&security, |_| Method::new(Access::AnyToken)).unwrap();
        let listener = serve::listen("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (routes, health) = serve::standard_routes(&[], &[]).await.unwrap();
        let shutdown = CancellationToken::new();
        tokio::spawn(serve::serve_with(
            policy,
            routes,
            listener,
            health,
            shutdown,
            Duration::ZERO,
        ));
        address
    };
    let asks = async |address: &str, client: &str, server_name: &str| {
        let security = SecurityConfig {
            ca: file("ca.crt"),
            client_certificate: file(&format!("{client}.crt")),
            client_key: file(&format!("{client}.key")),
            server_name: server_name.into(),
            ..SecurityConfig::default()
        };
        let link = connect::link(address, &security).unwrap();
        HealthClient::new(link)
            .check(HealthCheckRequest::default())
            .await
            .map(drop)
    };
    let store = served("replay-store").await;
    asks(&store, "actor", "replay-store").await.unwrap();
    // A server's certificate is for its own name, and no client's.
    assert!(asks(&store, "actor", "inference-server").await.is_err());
    assert!(asks(&store, "inference-server", "replay-store").await.is_err());
    // A client's certificate is not valid for servers.
    let posing = served("actor").await;
    assert!(asks(&posing, "learner", "actor").await.is_err());
}

#[test]
fn no_overlay_contains_secrets_but_the_one_for_trials() {
    for overlay in OVERLAYS.into_iter().filter(|&overlay| overlay != "local") {
        let documents = rendered(overlay).unwrap_or_default();
        assert!(resources::<Secret>(&documents, "Secret").is_empty(), "{overlay}");
    }
}
