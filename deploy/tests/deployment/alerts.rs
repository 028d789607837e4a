//! Tests of the alert rules and the dashboards. A test of the crate `launcher` compares the rules of Compose, those of the cluster and the
//! operator's page with the list of alarms.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use crate::{
    custom_resources::RuleFile,
    files::{EVERY_COMPONENT, all, documents, folder, rendered, run, succeeded, text},
    kubernetes::{resources, strictly},
};

pub fn rules() -> RuleFile {
    strictly(&documents(&text("prometheus/alerts.yml"))[0]).unwrap()
}

#[test]
fn dashboards_are_valid_and_use_the_provisioned_data_source() {
    let sources = documents(&text("grafana/provisioning/datasources/prometheus.yml"));
    let source = sources[0]["datasources"][0]["uid"].as_str().unwrap();
    for path in all("grafana/dashboards", ".json") {
        let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let panels: Vec<&Value> = dashboard["panels"].as_array().unwrap().iter().collect();
        assert!(panels.len() > 8, "{}", path.display());
        let mut ids = std::collections::BTreeSet::new();
        for panel in panels {
            assert!(
                ids.insert(panel["id"].as_u64().unwrap()),
                "an id is there twice: {panel}"
            );
            assert!(
                panel["gridPos"]["w"].as_u64().is_some_and(|width| width <= 24),
                "{panel}"
            );
            if panel["type"] == "row" {
                continue;
            }
            assert!(
                panel["title"].as_str().is_some_and(|title| !title.is_empty()),
                "{panel}"
            );
            assert_eq!(panel["datasource"]["uid"], source, "{panel}");
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
        }
    }
}

#[test]
fn the_clusters_dashboard_is_the_same_file() {
    let Some(documents) = rendered(EVERY_COMPONENT) else {
        return;
    };
    let maps: Vec<ConfigMap> = resources(&documents, "ConfigMap");
    let is_dashboard = |map: &&ConfigMap| {
        let labels = map.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.get("grafana_dashboard").map(String::as_str) == Some("1"))
    };
    let dashboard = maps
        .iter()
        .find(is_dashboard)
        .expect("a ConfigMap for Grafana's sidecar");
    assert_eq!(
        dashboard.data.as_ref().unwrap()["minuet.json"],
        text("grafana/dashboards/minuet.json")
    );
}

/// A sum over no series is empty and matches no comparison; each such expression needs a default.
#[test]
fn alerts_fire_for_roles_without_any_series() {
    for rule in rules().groups.into_iter().flat_map(|group| group.rules) {
        let name = rule.alert.unwrap_or_default();
        if name == "MinuetRoleDown" {
            for role in ["replay-store", "inference-server", "learner", "actor"] {
                let arm = format!("absent(up{{job=\"{role}\"}})");
                assert!(rule.expr.contains(&arm), "{name}: no {arm}");
            }
        } else if rule.expr.ends_with("== 0") {
            assert!(rule.expr.contains("or vector(0)) == 0"), "{name}: {}", rule.expr);
        }
    }
}

#[test]
fn alerts_fire_on_the_recorded_series_of_the_rule_tests() {
    let tests = folder().join("tests/alerts.test.yml");
    let Some(promtool) = test_support::debian("promtool") else {
        return;
    };
    let output = run(promtool, &["test", "rules"], &tests);
    succeeded(&output, &tests);
}
