//! Every rendered resource against the JSON schemas that the Kubernetes API publishes (kubernetes-validate ships them), and those of
//! operators against the types of `custom_resources.rs`.

use std::{fs, process::Output};

use serde_yaml_ng::Value;

use crate::{
    custom_resources::{PrometheusRule, ScaledObject, ServiceMonitor},
    files::{OVERLAYS, python_tools, rendered, succeeded},
    kubernetes::strictly,
};

/// Checks a resource whose kind an operator defines; `None`: Kubernetes defines the kind.
fn check_custom(document: &Value) -> Option<Result<(), String>> {
    Some(match document["kind"].as_str().unwrap() {
        "ScaledObject" => strictly::<ScaledObject>(document).map(drop),
        "ServiceMonitor" => strictly::<ServiceMonitor>(document).map(drop),
        "PrometheusRule" => strictly::<PrometheusRule>(document).map(drop),
        _ => return None,
    })
}

/// Validates documents strictly; `None`, and a counted skip, without the tool.
fn validated(documents: &[Value]) -> Option<Output> {
    let tools = python_tools()?;
    let texts: Vec<String> = documents
        .iter()
        .map(|document| serde_yaml_ng::to_string(document).unwrap())
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rendered.yaml");
    fs::write(&file, texts.join("---\n")).unwrap();
    let mut command = std::process::Command::new(tools.join("kubernetes-validate"));
    Some(command.arg("--strict").arg(&file).output().unwrap())
}

#[test]
fn every_resource_fits_its_schema() {
    let mut kubernetes = Vec::new();
    for overlay in OVERLAYS {
        let Some(documents) = rendered(overlay) else {
            return;
        };
        let mut own = Vec::new();
        for document in documents {
            match check_custom(&document) {
                Some(checked) => checked.unwrap_or_else(|error| panic!("{overlay}: {document:?}: {error}")),
                None => own.push(document),
            }
        }
        kubernetes.push((overlay, own));
    }
    for (overlay, own) in kubernetes {
        let Some(output) = validated(&own) else { return };
        succeeded(&output, overlay.as_ref());
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        // A kind without a schema only gets a warning.
        assert_eq!(text.matches(" passed for resource ").count(), own.len(), "{text}");
    }
}

#[test]
fn a_field_of_another_kind_is_refused() {
    let text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIP: None, replicas: 2}";
    let document = serde_yaml_ng::from_str(text).unwrap();
    let Some(output) = validated(&[document]) else {
        return;
    };
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).contains("replicas"));
}
