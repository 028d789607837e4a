//! Every rendered resource against the Kubernetes API's own types, unknown fields refused; and what a restricted,
//! drained, probed pod needs.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{
        ConfigMap, Container, Namespace, PersistentVolumeClaim, PodSpec, Secret, Service, ServiceAccount,
    },
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    scheduling::v1::PriorityClass,
};
use serde::de::DeserializeOwned;
use serde_yaml_ng::Value;

use crate::{
    custom::{PrometheusRule, ScaledObject, ServiceMonitor},
    files::{OVERLAYS, rendered},
};

/// The document as a `T`, if it has no field that `T` does not know.
pub fn strictly<T: DeserializeOwned>(document: &Value) -> Result<T, String> {
    let mut unknown = Vec::new();
    let parsed = serde_ignored::deserialize(document.clone(), |path| unknown.push(path.to_string()))
        .map_err(|error| error.to_string())?;
    if unknown.is_empty() {
        Ok(parsed)
    } else {
        Err(format!("unknown fields: {}", unknown.join(", ")))
    }
}

fn kind(document: &Value) -> (&str, &str) {
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

fn check(document: &Value) -> Result<(), String> {
    match kind(document) {
        ("v1", "Namespace") => strictly::<Namespace>(document).map(drop),
        ("v1", "ServiceAccount") => strictly::<ServiceAccount>(document).map(drop),
        ("v1", "ConfigMap") => strictly::<ConfigMap>(document).map(drop),
        ("v1", "Secret") => strictly::<Secret>(document).map(drop),
        ("v1", "Service") => strictly::<Service>(document).map(drop),
        ("v1", "PersistentVolumeClaim") => strictly::<PersistentVolumeClaim>(document).map(drop),
        ("apps/v1", "Deployment") => strictly::<Deployment>(document).map(drop),
        ("apps/v1", "StatefulSet") => strictly::<StatefulSet>(document).map(drop),
        ("policy/v1", "PodDisruptionBudget") => strictly::<PodDisruptionBudget>(document).map(drop),
        ("networking.k8s.io/v1", "NetworkPolicy") => strictly::<NetworkPolicy>(document).map(drop),
        ("scheduling.k8s.io/v1", "PriorityClass") => strictly::<PriorityClass>(document).map(drop),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => {
            strictly::<HorizontalPodAutoscaler>(document).map(drop)
        }
        ("keda.sh/v1alpha1", "ScaledObject") => strictly::<ScaledObject>(document).map(drop),
        ("monitoring.coreos.com/v1", "ServiceMonitor") => strictly::<ServiceMonitor>(document).map(drop),
        ("monitoring.coreos.com/v1", "PrometheusRule") => strictly::<PrometheusRule>(document).map(drop),
        other => Err(format!("no schema for {other:?}")),
    }
}

/// The pods that an overlay makes, by the name of what makes them.
pub fn pods(documents: &[Value]) -> Vec<(String, PodSpec)> {
    let of = |document: &Value| {
        let name = document["metadata"]["name"].as_str()?.to_owned();
        let template = match kind(document).1 {
            "Deployment" => strictly::<Deployment>(document).ok()?.spec.template,
            "StatefulSet" => strictly::<StatefulSet>(document).ok()?.spec.template,
            _ => return None,
        };
        Some((name, template.spec?))
    };
    documents.iter().filter_map(of).collect()
}

#[test]
fn every_resource_fits_its_schema() {
    for overlay in OVERLAYS {
        for document in rendered(overlay).into_iter().flatten() {
            let name = &document["metadata"]["name"];
            if let Err(error) = check(&document) {
                panic!("{overlay}: {:?} {name:?}: {error}", kind(&document));
            }
            assert!(
                name.as_str().is_some_and(|name| !name.is_empty()),
                "{overlay}: a resource without a name"
            );
        }
    }
}

#[test]
fn a_misspelt_field_is_found() {
    let text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIp: None}";
    let document: Value = serde_yaml_ng::from_str(text).unwrap();
    let error = check(&document).unwrap_err();
    assert!(error.contains("clusterIp"), "{error}");
}

#[test]
fn every_pod_is_restricted_probed_and_bounded() {
    for overlay in OVERLAYS {
        let documents = rendered(overlay).unwrap_or_default();
        for (name, pod) in pods(&documents) {
            let at = format!("{overlay}: {name}");
            let security = pod.security_context.clone().expect(&at);
            assert_eq!(security.run_as_non_root, Some(true), "{at}");
            assert_eq!(
                security.seccomp_profile.expect(&at).type_,
                "RuntimeDefault",
                "{at}"
            );
            assert_eq!(pod.automount_service_account_token, Some(false), "{at}");
            for container in &pod.containers {
                restricted(container, &at);
                bounded(container, &at);
                probed(container, &at);
                mounts_exist(container, &pod, &at);
            }
        }
    }
}

fn restricted(container: &Container, at: &str) {
    let security = container.security_context.clone().expect(at);
    assert_eq!(security.allow_privilege_escalation, Some(false), "{at}");
    assert_eq!(security.read_only_root_filesystem, Some(true), "{at}");
    assert_eq!(
        security.capabilities.and_then(|these| these.drop),
        Some(vec!["ALL".to_owned()]),
        "{at}"
    );
}

fn bounded(container: &Container, at: &str) {
    let resources = container.resources.clone().expect(at);
    let requests = resources.requests.expect(at);
    assert!(
        requests.contains_key("cpu") && requests.contains_key("memory"),
        "{at}"
    );
    assert!(resources.limits.expect(at).contains_key("memory"), "{at}");
}

fn probed(container: &Container, at: &str) {
    let ports = container.ports.clone().unwrap_or_default();
    let probes = [
        &container.startup_probe,
        &container.readiness_probe,
        &container.liveness_probe,
    ];
    assert!(probes.iter().any(|probe| probe.is_some()), "{at}: no probe");
    for probe in probes.into_iter().flatten() {
        if let Some(grpc) = &probe.grpc {
            let is_health = |port: &&k8s_openapi::api::core::v1::ContainerPort| {
                port.container_port == grpc.port && port.name.as_deref() == Some("health")
            };
            assert!(
                ports.iter().any(|port| is_health(&port)),
                "{at}: a gRPC probe asks port {}, which is not its health port",
                grpc.port
            );
        }
    }
}

fn mounts_exist(container: &Container, pod: &PodSpec, at: &str) {
    let volumes = pod.volumes.clone().unwrap_or_default();
    let given: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    for mount in container.volume_mounts.iter().flatten() {
        // A StatefulSet's own claims are volumes of its pods too.
        let claimed = ["replay", "data"].contains(&mount.name.as_str());
        assert!(
            claimed || given.contains(&mount.name.as_str()),
            "{at}: no volume {}",
            mount.name
        );
    }
}

#[test]
fn the_learner_is_never_there_twice() {
    for overlay in OVERLAYS {
        for document in rendered(overlay).unwrap_or_default() {
            if kind(&document).1 == "Deployment" && document["metadata"]["name"] == "learner" {
                let spec = strictly::<Deployment>(&document).unwrap().spec;
                assert_eq!(spec.replicas, Some(1), "{overlay}");
                assert_eq!(
                    spec.strategy.unwrap().type_.as_deref(),
                    Some("Recreate"),
                    "{overlay}"
                );
            }
        }
    }
}

#[test]
fn gpus_are_asked_for_where_they_are_used_and_nowhere_else() {
    for overlay in OVERLAYS {
        for (name, pod) in pods(&rendered(overlay).unwrap_or_default()) {
            let uses = overlay != "local" && ["inference-server", "learner"].contains(&name.as_str());
            let limits = pod.containers[0].resources.clone().unwrap().limits.unwrap();
            assert_eq!(limits.contains_key("nvidia.com/gpu"), uses, "{overlay}: {name}");
            let image = pod.containers[0].image.clone().unwrap();
            assert_eq!(image.contains("-gpu"), uses, "{overlay}: {name}: {image}");
        }
    }
}
