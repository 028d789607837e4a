//! Reading rendered resources as the Kubernetes API's own types, unknown fields refused; and what a pod needs.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    batch::v1::CronJob,
    core::v1::{Container, PersistentVolumeClaim, PodSpec, PodTemplateSpec, Service},
};
use serde::de::DeserializeOwned;
use serde_yaml_ng::Value;

use crate::files::{EVERY_COMPONENT, OVERLAYS, documents, folders, rendered, text};

/// Parses the document as a `T`; an error if it has a field that `T` does not know.
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

/// A resource that creates pods.
pub struct Workload {
    pub kind: String,
    pub name: String,
    /// Labels of the pods.
    pub labels: BTreeMap<String, String>,
    pub pod: PodSpec,
    /// Volumes that each pod gets for itself.
    pub claims: Vec<PersistentVolumeClaim>,
}

impl Workload {
    fn of(document: &Value) -> Option<Self> {
        let mut claims = Vec::new();
        let template: PodTemplateSpec = match kind(document).1 {
            "Deployment" => strictly::<Deployment>(document).unwrap().spec.template,
            "StatefulSet" => {
                let spec = strictly::<StatefulSet>(document).unwrap().spec;
                claims = spec.volume_claim_templates.unwrap_or_default();
                spec.template
            }
            "CronJob" => {
                let jobs = strictly::<CronJob>(document).unwrap().spec.job_template;
                jobs.spec.unwrap().template
            }
            _ => return None,
        };
        Some(Self {
            kind: kind(document).1.to_owned(),
            name: document["metadata"]["name"].as_str()?.to_owned(),
            labels: template.metadata.unwrap().labels.unwrap_or_default(),
            pod: template.spec?,
            claims,
        })
    }

    pub fn container(&self) -> &Container {
        assert_eq!(self.pod.containers.len(), 1, "{}", self.name);
        &self.pod.containers[0]
    }

    /// True if the pods have all of these labels.
    pub fn has(&self, labels: &BTreeMap<String, String>) -> bool {
        labels
            .iter()
            .all(|(key, value)| self.labels.get(key) == Some(value))
    }
}

/// Lists the resources of an overlay that create pods; none if the overlay cannot be rendered.
pub fn workloads(overlay: &str) -> Vec<Workload> {
    let documents = rendered(overlay).unwrap_or_default();
    documents.iter().filter_map(Workload::of).collect()
}

/// Lists the resources of a kind in a rendered overlay.
pub fn resources<T: DeserializeOwned>(documents: &[Value], kind: &str) -> Vec<T> {
    let of_kind = documents.iter().filter(|document| document["kind"] == kind);
    of_kind.map(|document| strictly(document).unwrap()).collect()
}

#[test]
fn every_component_and_every_overlay_is_rendered_here() {
    let kustomization = text("tests/every-component/kustomization.yaml");
    let listed = documents(&kustomization)[0]["components"].clone();
    let listed: BTreeSet<String> = listed
        .as_sequence()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap().rsplit('/').next().unwrap().to_owned())
        .collect();
    assert_eq!(listed, folders("kubernetes/components"));
    let mut overlays = folders("kubernetes/overlays");
    overlays.insert(EVERY_COMPONENT.into());
    assert_eq!(overlays, OVERLAYS.map(str::to_owned).into());
}

#[test]
fn a_misspelt_field_is_found() {
    let text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIp: None}";
    let document: Value = serde_yaml_ng::from_str(text).unwrap();
    let error = strictly::<Service>(&document).map(drop).unwrap_err();
    assert!(error.contains("clusterIp"), "{error}");
}

/// `policies.rs` holds the pods against the restricted profile, and their requests against their limits.
#[test]
fn every_pod_is_read_only_and_probed_and_has_what_it_mounts() {
    for overlay in OVERLAYS {
        for workload in workloads(overlay) {
            let at = format!("{overlay}: {}", workload.name);
            assert_eq!(workload.pod.automount_service_account_token, Some(false), "{at}");
            let container = workload.container();
            let security = container.security_context.clone().expect(&at);
            assert_eq!(security.read_only_root_filesystem, Some(true), "{at}");
            mounts_exist(&workload, &at);
            // A job's pod ends by itself and needs no probe.
            if workload.kind != "CronJob" {
                probed(container, &at);
            }
        }
    }
}

fn probed(container: &Container, at: &str) {
    let probes = [
        &container.startup_probe,
        &container.readiness_probe,
        &container.liveness_probe,
    ];
    assert!(probes.iter().any(|probe| probe.is_some()), "{at}: no probe");
}

fn mounts_exist(workload: &Workload, at: &str) {
    let volumes = workload.pod.volumes.iter().flatten();
    let claims = workload
        .claims
        .iter()
        .filter_map(|claim| claim.metadata.name.as_ref());
    let given: Vec<&String> = volumes.map(|volume| &volume.name).chain(claims).collect();
    for mount in workload.container().volume_mounts.iter().flatten() {
        assert!(given.contains(&&mount.name), "{at}: no volume {}", mount.name);
    }
}

#[test]
fn there_is_never_more_than_one_learner() {
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
fn exactly_the_roles_that_use_gpus_request_them() {
    for overlay in OVERLAYS {
        for workload in workloads(overlay) {
            let name = &workload.name;
            let uses = ["gpu", "production"].contains(&overlay)
                && ["inference-server", "learner"].contains(&name.as_str());
            let container = workload.container();
            let limits = container.resources.clone().unwrap().limits.unwrap();
            assert_eq!(limits.contains_key("nvidia.com/gpu"), uses, "{overlay}: {name}");
            let image = container.image.clone().unwrap();
            assert_eq!(image.contains("-gpu"), uses, "{overlay}: {name}: {image}");
        }
    }
}
