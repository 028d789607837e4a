//! Rules, dashboards, and the operator's page.

use serde_json::Value;

use crate::{
    custom::{PrometheusRule, RuleFile},
    files::{all, documents, text},
    kubernetes::strictly,
};

fn rules() -> RuleFile {
    strictly(&documents(&text("prometheus/alerts.yml"))[0]).unwrap()
}

#[test]
fn the_cluster_has_the_same_rules_as_compose() {
    let resource = documents(&text("kubernetes/components/monitoring/prometheus-rule.yaml"));
    let resource: PrometheusRule = strictly(&resource[0]).unwrap();
    assert_eq!(resource.spec, rules());
}

#[test]
fn the_operators_page_says_what_to_do_about_every_alert() {
    let page = text("README.md");
    let mut count = 0;
    for alert in rules().groups.into_iter().flat_map(|group| group.rules) {
        let Some(name) = alert.alert else { continue };
        assert!(
            page.contains(&format!("**{name}**")),
            "README.md says nothing of {name}"
        );
        assert!(alert.annotations.contains_key("summary"), "{name}");
        assert!(alert.labels.contains_key("severity"), "{name}");
        count += 1;
    }
    assert!(count >= 8, "only {count} alerts");
}

#[test]
fn dashboards_are_whole_and_ask_the_data_source_that_is_provisioned() {
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
