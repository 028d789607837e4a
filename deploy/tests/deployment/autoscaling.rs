//! Tests of the two autoscalers: both query one ratio and ignore an empty result.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;

use crate::{
    alerts::rules,
    custom_resources::ScaledObject,
    files::{documents, text},
    kubernetes::strictly,
};

#[test]
fn both_autoscalers_query_the_recorded_ratio_and_ignore_an_empty_result() {
    let document = documents(&text("kubernetes/components/keda/scaled-object.yaml")).remove(0);
    let keda = strictly::<ScaledObject>(&document).unwrap().spec;
    let document = documents(&text("kubernetes/components/hpa/hpa.yaml")).remove(0);
    let hpa = strictly::<HorizontalPodAutoscaler>(&document).unwrap().spec;
    let adapter = documents(&text("kubernetes/components/hpa/adapter-rules.yaml")).remove(0);
    let adapter = &adapter["rules"]["external"][0];

    let recorded = rules().groups.into_iter().flat_map(|group| group.rules);
    let recorded: Vec<String> = recorded.filter_map(|rule| rule.record).collect();
    let metric = adapter["seriesQuery"].as_str().unwrap();
    assert!(recorded.iter().any(|name| name == metric), "{metric}");
    let metrics = hpa.metrics.unwrap();
    assert_eq!(metrics[0].external.as_ref().unwrap().metric.name, metric);

    // NaN would win a maximum, and alone it would scale the actors down.
    let query = format!("max({metric} >= 0)");
    let trigger = &keda.triggers[0].metadata;
    assert_eq!(trigger["query"], query);
    assert_eq!(adapter["metricsQuery"], query.as_str());
    assert_eq!(trigger["ignoreNullValues"], "false");
    assert_eq!(keda.fallback.behavior, "currentReplicas");

    assert_eq!(keda.scale_target_ref["name"], hpa.scale_target_ref.name);
    assert_eq!(Some(keda.min_replica_count), hpa.min_replicas);
    assert_eq!(keda.max_replica_count, hpa.max_replicas);
}
