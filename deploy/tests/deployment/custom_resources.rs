//! Types of the custom resources in use, as strict as those of the Kubernetes API: only fields that their operators document.

#![allow(dead_code)]

use std::collections::BTreeMap;

use k8s_openapi::{
    api::autoscaling::v2::HorizontalPodAutoscalerBehavior,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource<Spec> {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    pub spec: Spec,
}

pub type ServiceMonitor = Resource<ServiceMonitorSpec>;
pub type PrometheusRule = Resource<RuleFile>;
pub type ScaledObject = Resource<ScaledObjectSpec>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMonitorSpec {
    pub selector: LabelSelector,
    pub job_label: Option<String>,
    pub endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    pub port: String,
    pub path: Option<String>,
    interval: Option<String>,
}

/// A Prometheus rule file, which is also the spec of a `PrometheusRule`.
#[derive(Debug, Deserialize, PartialEq)]
pub struct RuleFile {
    pub groups: Vec<Group>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub struct Group {
    pub name: String,
    pub rules: Vec<Rule>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub struct Rule {
    pub record: Option<String>,
    pub alert: Option<String>,
    pub expr: String,
    #[serde(rename = "for")]
    pub holds_for: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpec {
    pub scale_target_ref: BTreeMap<String, String>,
    pub min_replica_count: i32,
    pub max_replica_count: i32,
    polling_interval: i32,
    cooldown_period: i32,
    pub triggers: Vec<Trigger>,
    pub fallback: Fallback,
    advanced: Advanced,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    #[serde(rename = "type")]
    kind: String,
    metric_type: String,
    pub metadata: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fallback {
    failure_threshold: i32,
    replicas: i32,
    pub behavior: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Advanced {
    horizontal_pod_autoscaler_config: AutoscalerConfig,
}

#[derive(Deserialize)]
pub struct AutoscalerConfig {
    behavior: HorizontalPodAutoscalerBehavior,
}
