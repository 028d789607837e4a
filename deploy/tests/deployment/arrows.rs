//! The network policies against the arrows of ARCHITECTURE.md: what may talk to what, and nothing else.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::networking::v1::{NetworkPolicy, NetworkPolicyPeer},
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use crate::{
    files::{OVERLAYS, rendered},
    kubernetes::strictly,
};

const NAME: &str = "app.kubernetes.io/name";

fn role(selector: &LabelSelector) -> Option<String> {
    selector.match_labels.as_ref()?.get(NAME).cloned()
}

fn roles(peers: &[NetworkPolicyPeer]) -> Vec<String> {
    let selectors = peers.iter().filter_map(|peer| peer.pod_selector.as_ref());
    selectors.filter_map(role).collect()
}

/// Who may talk to whom, on which port.
type Arrows = BTreeSet<(String, String, i32)>;

/// What the policies allow between roles, as (from, to, port), by what the senders may send and the receivers may get.
fn allowed(policies: &[NetworkPolicy]) -> (Arrows, Arrows) {
    let (mut sent, mut received) = (Arrows::new(), Arrows::new());
    for spec in policies.iter().filter_map(|policy| policy.spec.as_ref()) {
        let Some(own) = spec.pod_selector.as_ref().and_then(role) else {
            continue;
        };
        let number = |port: &Option<IntOrString>| match port {
            Some(IntOrString::Int(port)) => *port,
            other => panic!("{own}: a rule without a port number: {other:?}"),
        };
        for rule in spec.egress.iter().flatten() {
            for peer in roles(rule.to.as_deref().unwrap_or_default()) {
                for port in rule.ports.iter().flatten() {
                    sent.insert((own.clone(), peer.clone(), number(&port.port)));
                }
            }
        }
        for rule in spec.ingress.iter().flatten() {
            for peer in roles(rule.from.as_deref().unwrap_or_default()) {
                for port in rule.ports.iter().flatten() {
                    received.insert((peer.clone(), own.clone(), number(&port.port)));
                }
            }
        }
    }
    (sent, received)
}

#[test]
fn exactly_the_arrows_of_the_architecture_are_open() {
    let arrows = [
        ("actor", "inference-server", 50051),
        ("actor", "replay-store", 50052),
        ("learner", "replay-store", 50052),
    ];
    let arrows: BTreeSet<_> = arrows
        .map(|(from, to, port)| (from.to_owned(), to.to_owned(), port))
        .into();
    for overlay in OVERLAYS {
        let Some(documents) = rendered(overlay) else {
            return;
        };
        let policies: Vec<NetworkPolicy> = documents
            .iter()
            .filter(|document| document["kind"] == "NetworkPolicy")
            .map(|document| strictly(document).unwrap())
            .collect();
        let (sent, received) = allowed(&policies);
        assert_eq!(sent, arrows, "{overlay}: what may be sent");
        assert_eq!(received, arrows, "{overlay}: what may be received");

        let closed = policies.iter().any(|policy| {
            let spec = policy.spec.clone().unwrap();
            spec.ingress.is_none()
                && spec.egress.is_none()
                && spec.pod_selector == Some(LabelSelector::default())
                && spec.policy_types == Some(vec!["Ingress".into(), "Egress".into()])
        });
        assert!(closed, "{overlay}: nothing is closed by default");
    }
}
