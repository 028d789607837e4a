//! Stores with S3's interface: address and options from the URL, credentials from the usual AWS_* variables.
//!
//! A failed request is repeated a few times within about a second. Callers handle longer outages: each of them tries again
//! with growing pauses.

use std::{sync::Arc, time::Duration};

use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    client::ClientConfigKey,
    path::Path as StorePath,
};
use url::Url;

/// Options allowed after the `?` of an `s3://` URL. Keys and tokens are not allowed, because URLs end up in logs.
const URL_OPTIONS: [&str; 4] = ["endpoint", "region", "allow_http", "virtual_hosted_style_request"];
/// Longest time for one request with its body; a part of a large file has [`crate::PART_BYTES`].
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens `s3://bucket/prefix` without sending a request. Options in the URL take precedence over `variables`, which have the
/// names that the AWS SDKs use; an empty variable counts as not set.
pub(crate) fn open(
    url: &Url,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<(Arc<dyn ObjectStore>, StorePath), String> {
    let bucket = url.host_str().unwrap_or_default();
    if bucket.is_empty() {
        return Err("an S3 URL has the form s3://bucket/prefix".into());
    }
    let prefix = StorePath::from_url_path(url.path()).map_err(|error| error.to_string())?;
    // reqwest is built without a TLS provider of its own and panics if none is installed. Installing a second one fails without
    // harm.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(1),
                base: 2.0,
            },
            max_retries: 3,
            retry_timeout: REQUEST_TIMEOUT,
        })
        .with_client_options(
            ClientOptions::new()
                .with_timeout(REQUEST_TIMEOUT)
                .with_connect_timeout(CONNECT_TIMEOUT),
        );
    for (name, value) in variables {
        let name = name.to_ascii_lowercase();
        if !name.starts_with("aws_") || value.is_empty() {
            continue;
        }
        // Most AWS_* variables concern other programs.
        if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    for (name, value) in url.query_pairs() {
        if !URL_OPTIONS.contains(&name.as_ref()) {
            return Err(format!(
                "unknown option `{name}` of an S3 URL; options are {}, and credentials come from AWS_* variables",
                URL_OPTIONS.join(", ")
            ));
        }
        let key: AmazonS3ConfigKey = name.parse().map_err(|error| format!("{name}: {error}"))?;
        builder = builder.with_config(key, value);
    }
    refuse_accidental_plaintext(&builder)?;
    let store = builder.build().map_err(|error| error.to_string())?;
    Ok((Arc::new(store), prefix))
}

fn refuse_accidental_plaintext(builder: &AmazonS3Builder) -> Result<(), String> {
    let endpoint = builder
        .get_config_value(&AmazonS3ConfigKey::S3Endpoint)
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint))
        .unwrap_or_default();
    let allowed = builder.get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    if endpoint.starts_with("http://") && allowed.as_deref() != Some("true") {
        return Err(format!(
            "the endpoint {endpoint} is without TLS; AWS_ALLOW_HTTP=true (or allow_http=true in the URL) permits that"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(url: &str, variables: &[(&str, &str)]) -> Result<StorePath, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        open(&Url::parse(url).unwrap(), variables).map(|(_, prefix)| prefix)
    }

    #[test]
    fn options_come_from_the_url_and_from_variables() {
        let prefix = opened(
            "s3://bucket/a/b%20c",
            &[("AWS_ENDPOINT", ""), ("AWS_PROFILE", "x")],
        )
        .unwrap();
        assert_eq!(prefix.as_ref(), "a/b c");
        opened(
            "s3://bucket?endpoint=http://store:1&allow_http=true&region=eu",
            &[],
        )
        .unwrap();
        opened(
            "s3://bucket",
            &[("AWS_ENDPOINT", "http://store:1"), ("AWS_ALLOW_HTTP", "true")],
        )
        .unwrap();
    }

    #[test]
    fn plain_http_credentials_in_urls_and_malformed_options_are_refused() {
        for (url, variable, reason) in [
            ("s3://bucket", ("AWS_ENDPOINT", "http://store:1"), "without TLS"),
            (
                "s3://bucket?endpoint=http://store:1",
                ("AWS_ALLOW_HTTP", "false"),
                "without TLS",
            ),
            ("s3://bucket?secret_access_key=x", ("", ""), "unknown option"),
            ("s3://bucket?allow_http=perhaps", ("", ""), "perhaps"),
            ("s3:///prefix", ("", ""), "s3://bucket/prefix"),
        ] {
            let error = opened(url, &[variable]).unwrap_err();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }
}
