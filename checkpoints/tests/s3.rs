//! Checkpoints on `s3://`, with an S3-compatible server as a child process: the scenarios of folders, cut connections, a
//! killed server, TLS.

use std::time::Duration;

use crate::common::{
    draft, files, scenarios,
    server::{self, Line, Server, repository},
};
use bytes::Bytes;
use checkpoints::{Error, LATEST, LeaseTimes, MODEL, OPTIMIZER, Repository, WEIGHTS};
use proptest::prelude::*;

const QUICK: LeaseTimes = LeaseTimes {
    beat: Duration::from_millis(20),
    expires: Duration::from_millis(200),
};

/// Returns the port of the shared server. If the server cannot be started, returns from the test; a message says so.
macro_rules! port {
    () => {
        match server::shared() {
            Some(port) => port,
            None => return,
        }
    };
}

#[tokio::test]
async fn a_published_checkpoint_is_fetched_unchanged() {
    scenarios::a_published_checkpoint_is_fetched_unchanged(repository(port!(), "whole")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_during_publishing_see_whole_checkpoints_only() {
    scenarios::readers_during_publishing_see_whole_checkpoints_only(repository(port!(), "readers"), 6).await;
}

#[tokio::test]
async fn two_publishers_of_one_version_end_with_one_whole_checkpoint() {
    scenarios::two_publishers_of_one_version_end_with_one_whole_checkpoint(repository(port!(), "two")).await;
}

#[tokio::test]
async fn a_watch_follows_the_label_and_old_checkpoints_go() {
    scenarios::a_watch_follows_the_label_and_old_checkpoints_go(repository(port!(), "watch")).await;
}

#[tokio::test]
async fn a_replaced_lease_holder_cannot_publish() {
    scenarios::a_replaced_lease_holder_cannot_publish(repository(port!(), "fence"), QUICK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_writers_that_race_exactly_one_wins() {
    scenarios::of_writers_that_race_exactly_one_wins(repository(port!(), "races"), QUICK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn competing_publishers_leave_one_line_of_descent() {
    scenarios::competing_publishers_leave_one_line_of_descent(repository(port!(), "rivals"), QUICK, 8).await;
}

#[tokio::test]
async fn large_files_are_uploaded_in_parts_and_verified() {
    let repository = repository(port!(), "large");
    let large = |salt: u8| {
        Bytes::from(
            (0..40_000_000_u32)
                .map(|at| (at >> 7) as u8 ^ salt)
                .collect::<Vec<_>>(),
        )
    };
    let files = |salt| vec![(MODEL, Bytes::from_static(b"model")), (WEIGHTS, large(salt))];
    let version = repository.publish(draft(1), files(1)).await.unwrap();
    let manifest = repository.manifest(&version).await.unwrap();
    assert_eq!(repository.fetch(&manifest, WEIGHTS).await.unwrap(), large(1));
    // A second publish behaves as with small files.
    assert_eq!(repository.publish(draft(1), files(1)).await.unwrap(), version);
    assert!(matches!(
        repository.publish(draft(1), files(2)).await,
        Err(Error::Refused(reason)) if reason.contains(WEIGHTS)
    ));
}

/// Reads all files of the version that `name` points at.
async fn read(repository: &Repository, name: &str) -> Vec<(&'static str, Bytes)> {
    let manifest = repository.resolve(name).await.unwrap();
    let mut found = Vec::new();
    for file in [MODEL, WEIGHTS, OPTIMIZER] {
        found.push((file, repository.fetch(&manifest, file).await.unwrap()));
    }
    found
}

#[tokio::test]
async fn a_connection_cut_during_a_publish_leaves_the_old_checkpoint_or_the_new_one() {
    let port = port!();
    // Bytes towards the server until the cut: within each file, the manifest, the label, and after all of them.
    for (case, bytes) in [
        1, 500, 2_000, 4_500, 7_500, 11_000, 14_000, 18_000, 22_000, 60_000,
    ]
    .into_iter()
    .enumerate()
    {
        let line = Line::to(port).await;
        let reader = repository(port, &format!("cut/{case}"));
        let publisher = repository(line.port, &format!("cut/{case}"));
        let publish = async |salt: u8| {
            let version = publisher.publish(draft(salt.into()), files(salt)).await?;
            publisher.set_label(LATEST, &version).await?;
            Ok::<_, Error>(version)
        };
        publish(1).await.unwrap();

        line.cut_after(bytes);
        let interrupted = publish(2).await;
        match &interrupted {
            Ok(_) => assert!(!line.is_cut(), "{bytes}"),
            Err(error) => assert!(error.is_transient(), "{bytes}: {error}"),
        }
        let seen = read(&reader, LATEST).await;
        let is_old = seen == files(1);
        assert!(is_old || seen == files(2), "{bytes}: half a checkpoint");
        assert!(interrupted.is_err() || !is_old, "{bytes}: acknowledged and lost");
        for manifest in reader.list().await.unwrap() {
            read(&reader, manifest.version.as_str()).await;
        }

        line.repair();
        publish(2).await.unwrap();
        assert_eq!(read(&reader, LATEST).await, files(2));
    }
}

#[tokio::test]
async fn a_server_killed_during_a_publish_causes_a_transient_error_only() {
    let Some(python) = server::python() else { return };
    let mut server = Server::start(python, &[]);
    let (port, line) = (server.port, Line::to(server.port).await);
    let publisher = repository(line.port, "killed");
    let reader = repository(port, "killed");
    let old = publisher.publish(draft(1), files(1)).await.unwrap();
    publisher.set_label(LATEST, &old).await.unwrap();
    let manifest = reader.resolve(LATEST).await.unwrap();

    let large = || {
        let file = Bytes::from(vec![7; 4_000_000]);
        vec![(MODEL, file.clone()), (WEIGHTS, file.clone()), (OPTIMIZER, file)]
    };
    // The cut is within the second of three files.
    line.cut_after(6_000_000);
    let publishing = tokio::spawn({
        let publisher = publisher.clone();
        async move { publisher.publish(draft(2), large()).await }
    });
    while !line.is_cut() {
        assert_eq!(reader.list().await.unwrap(), std::slice::from_ref(&manifest));
    }
    server.kill();
    let error = publishing.await.unwrap().unwrap_err();
    assert!(error.is_transient(), "{error}");
    for error in [
        reader.resolve(LATEST).await.unwrap_err(),
        reader.fetch(&manifest, MODEL).await.unwrap_err(),
        reader.list().await.unwrap_err(),
    ] {
        assert!(
            matches!(error, Error::Store(_)) && error.is_transient(),
            "{error}"
        );
    }

    // The server starts again, without its data. The publisher repeats the call.
    let _server = Server::start(python, &[&port.to_string()]);
    line.repair();
    let version = publisher.publish(draft(2), large()).await.unwrap();
    publisher.set_label(LATEST, &version).await.unwrap();
    assert_eq!(read(&reader, LATEST).await, large());
}

#[tokio::test]
async fn a_store_over_tls_works() {
    let Some(python) = server::python() else { return };
    let home = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let write = |name: &str, text: String| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = write("certificate.pem", made.cert.pem());
    let key = write("key.pem", made.signing_key.serialize_pem());
    let server = Server::start(python, &["0", &certificate, &key]);
    let url = format!(
        "s3://{}/tls?endpoint=https://127.0.0.1:{}",
        server::BUCKET,
        server.port
    );

    let distrusting = Repository::open_with(&url, server::credentials()).unwrap();
    let error = distrusting.label(LATEST).await.unwrap_err();
    assert!(
        matches!(error, Error::Store(_)),
        "the certificate must not be trusted: {error}"
    );

    let mut variables = server::credentials();
    variables.push(("AWS_ALLOW_INVALID_CERTIFICATES".into(), "true".into()));
    let trusting = Repository::open_with(&url, variables).unwrap();
    scenarios::a_published_checkpoint_is_fetched_unchanged(trusting).await;
}

#[tokio::test]
async fn a_missing_bucket_gives_an_error_that_names_it() {
    let url = format!(
        "s3://elsewhere?endpoint=http://127.0.0.1:{}&allow_http=true",
        port!()
    );
    let repository = Repository::open_with(&url, server::credentials()).unwrap();
    let error = repository.publish(draft(1), files(1)).await.unwrap_err();
    assert!(
        error.to_string().contains("bucket does not exist") && !error.is_transient(),
        "{error}"
    );
}

#[test]
fn drafts_and_files_are_read_as_they_were_published() {
    let port = port!();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let file = proptest::collection::vec(any::<u8>(), 0..4096).prop_map(Bytes::from);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(24));
    let given = (
        0_u64..1_000_000_000_000,
        "[a-z][a-z0-9._-]{0,20}",
        file.clone(),
        file,
        "\\PC{0,20}",
    );
    runner
        .run(&given, |(step, name, model, other, state)| {
            prop_assume!(name != "manifest.json" && name != MODEL);
            runtime.block_on(async {
                let repository = repository(port, "property");
                let mut draft = draft(step);
                draft.learner_state = state.clone().into();
                let files = vec![(MODEL, model.clone()), (name.as_str(), other.clone())];
                let version = repository.publish(draft, files).await.unwrap();
                let manifest = repository.manifest(&version).await.unwrap();
                prop_assert_eq!(&manifest.draft.learner_state, &serde_json::Value::from(state));
                prop_assert_eq!(repository.fetch(&manifest, MODEL).await.unwrap(), model);
                prop_assert_eq!(repository.fetch(&manifest, &name).await.unwrap(), other);
                Ok(())
            })
        })
        .unwrap();
}
