//! Tests of the network policies against the arrows of ARCHITECTURE.md: these connections are allowed, and no others. A rule in a
//! form that this test does not know fails it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort},
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use crate::{
    files::{OVERLAYS, rendered},
    kubernetes::resources,
};

const NAME: &str = "app.kubernetes.io/name";
/// Peer of a rule without peers.
const ANYONE: &str = "anyone";
const EVERY_POD: &str = "every pod";

/// Returns the label of a selector with one label and no expressions.
fn only_label(selector: &LabelSelector) -> Option<(&str, &str)> {
    let labels = selector
        .match_labels
        .as_ref()
        .filter(|labels| labels.len() == 1)?;
    let has_expressions = selector
        .match_expressions
        .as_ref()
        .is_some_and(|all| !all.is_empty());
    let (key, value) = labels.iter().next().filter(|_| !has_expressions)?;
    Some((key, value))
}

/// Returns the name that the tables below use for pods.
fn pods(selector: &LabelSelector) -> Vec<String> {
    if *selector == LabelSelector::default() {
        return vec![EVERY_POD.into()];
    }
    match only_label(selector) {
        Some((NAME, role)) => return vec![role.into()],
        Some((
            label @ ("minuet.dev/analyzes" | "minuet.dev/evaluates" | "minuet.dev/keeps-games"),
            "true",
        )) => {
            return vec![format!("pods with {label}")];
        }
        Some(other) => panic!("pods by {other:?}"),
        None => {}
    }
    let no_labels = selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty);
    match selector.match_expressions.as_deref() {
        Some([listed]) if no_labels && listed.key == NAME && listed.operator == "In" => {
            listed.values.clone().unwrap()
        }
        _ => panic!("pods by {selector:?}"),
    }
}

fn names(peer: &NetworkPolicyPeer) -> Vec<String> {
    assert!(peer.ip_block.is_none(), "{peer:?}");
    match (&peer.pod_selector, &peer.namespace_selector) {
        (Some(selector), None) => pods(selector),
        (None, Some(selector)) => match only_label(selector) {
            Some(("kubernetes.io/metadata.name", "kube-system")) => vec!["names".into()],
            Some((
                label @ ("minuet.dev/analyzes" | "minuet.dev/evaluates" | "minuet.dev/metrics"),
                "true",
            )) => {
                vec![format!("namespaces with {label}")]
            }
            other => panic!("namespaces by {other:?}"),
        },
        _ => panic!("{peer:?}"),
    }
}

/// An allowed connection: sender, receiver, port.
type Arrows = BTreeSet<(String, String, i32)>;

/// Lists the connections that a rule allows: each of its peers on each of its ports.
fn allowed(peers: Option<&[NetworkPolicyPeer]>, ports: Option<&[NetworkPolicyPort]>) -> Vec<(String, i32)> {
    let peers = match peers.unwrap_or_default() {
        [] => vec![ANYONE.into()],
        peers => peers.iter().flat_map(names).collect(),
    };
    let ports = ports.expect("a rule names its ports");
    assert!(!ports.is_empty(), "a rule without ports allows all of them");
    let number = |port: &NetworkPolicyPort| match (&port.port, port.end_port) {
        (Some(IntOrString::Int(number)), None) => *number,
        _ => panic!("a rule without a port number: {port:?}"),
    };
    let each = |peer: &String| {
        ports
            .iter()
            .map(|port| (peer.clone(), number(port)))
            .collect::<Vec<_>>()
    };
    peers.iter().flat_map(each).collect()
}

/// Lists the connections that the policies allow at both ends: egress of the sender and ingress of the receiver.
fn arrows(policies: &[NetworkPolicy]) -> (Arrows, Arrows) {
    let (mut sent, mut received) = (Arrows::new(), Arrows::new());
    for spec in policies.iter().filter_map(|policy| policy.spec.as_ref()) {
        let own = pods(spec.pod_selector.as_ref().unwrap());
        let [own] = &own[..] else { panic!("{own:?}") };
        for rule in spec.egress.iter().flatten() {
            for (peer, port) in allowed(rule.to.as_deref(), rule.ports.as_deref()) {
                sent.insert((own.clone(), peer, port));
            }
        }
        for rule in spec.ingress.iter().flatten() {
            for (peer, port) in allowed(rule.from.as_deref(), rule.ports.as_deref()) {
                received.insert((peer, own.clone(), port));
            }
        }
    }
    (sent, received)
}

const SENT: [(&str, &str, i32); 5] = [
    (EVERY_POD, "names", 53),
    ("actor", "inference-server", 50051),
    ("actor", "replay-store", 50052),
    ("learner", "replay-store", 50052),
    ("pods with minuet.dev/keeps-games", "replay-store", 50052),
];
const RECEIVED: [(&str, &str, i32); 7] = [
    ("namespaces with minuet.dev/metrics", EVERY_POD, 9100),
    ("actor", "inference-server", 50051),
    ("pods with minuet.dev/evaluates", "inference-server", 50051),
    ("namespaces with minuet.dev/evaluates", "inference-server", 50051),
    ("actor", "replay-store", 50052),
    ("learner", "replay-store", 50052),
    ("pods with minuet.dev/keeps-games", "replay-store", 50052),
];
/// Sent and received, if the component `studio` is there.
const OF_STUDIO: [(&str, &str, i32); 3] = [
    ("studio", EVERY_POD, 9100),
    ("studio", "inference-server", 50051),
    ("studio", "replay-store", 50052),
];
/// Lists the pods that use the object store, inside or outside the cluster.
const OBJECTS: [&str; 6] = [
    "inference-server",
    "learner",
    "pods with minuet.dev/keeps-games",
    "rating",
    "replay-store",
    "studio",
];

#[test]
fn exactly_the_arrows_of_the_architecture_are_open() {
    let owned = |(from, to, port): (&str, &str, i32)| (from.to_owned(), to.to_owned(), port);
    for overlay in OVERLAYS {
        let Some(documents) = rendered(overlay) else {
            return;
        };
        let policies: Vec<NetworkPolicy> = resources(&documents, "NetworkPolicy");
        let has = |name: &str| {
            let is = |policy: &NetworkPolicy| policy.metadata.name.as_deref() == Some(name);
            policies.iter().any(is)
        };
        let mut may_send: Arrows = SENT.map(owned).into();
        for from in OBJECTS
            .into_iter()
            .filter(|&from| !["rating", "studio"].contains(&from) || has(from))
        {
            may_send.extend([443, 8333].map(|port| owned((from, ANYONE, port))));
        }
        let mut may_receive: Arrows = RECEIVED.map(owned).into();
        if has("object-store") {
            may_receive.extend(OBJECTS.map(|from| owned((from, "object-store", 8333))));
        }
        if has("analysis") {
            may_send.insert(owned(("analysis", "inference-server", 50051)));
            let clients = [
                "pods with minuet.dev/analyzes",
                "namespaces with minuet.dev/analyzes",
            ];
            may_receive.extend(clients.map(|from| owned((from, "analysis", 50053))));
        }
        if has("studio") {
            may_send.extend(OF_STUDIO.map(owned));
            may_send.insert(owned(("studio", "namespaces with minuet.dev/metrics", 9090)));
            may_receive.extend(OF_STUDIO.map(owned));
        }
        let (sent, received) = arrows(&policies);
        assert_eq!(sent, may_send, "{overlay}: what may be sent");
        assert_eq!(received, may_receive, "{overlay}: what may be received");

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

#[test]
#[should_panic(expected = "namespaces by")]
fn a_rule_for_all_namespaces_is_noticed() {
    let everybody = NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector::default()),
        ..NetworkPolicyPeer::default()
    };
    names(&everybody);
}
