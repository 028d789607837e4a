//! Policies of a cluster, which its admission and its drains hold against rendered resources: the restricted profile of the Pod Security Standards,
//! requests within limits, disruption budgets, and images with a fixed tag.

use k8s_openapi::{
    api::{
        core::v1::{Namespace, PodSpec, Volume},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};
use serde_yaml_ng::Value;

use crate::{
    files::{EVERY_COMPONENT, OVERLAYS, rendered},
    kubernetes::{Workload, resources, workloads},
};

/// Reasons for which the restricted profile refuses a pod (Kubernetes' "Pod Security Standards", version 1.35).
fn refused(pod: &PodSpec) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut refuse = |is_refused: bool, reason: String| {
        if is_refused {
            reasons.push(reason);
        }
    };
    let is_on = |switch: Option<bool>| switch == Some(true);
    refuse(
        is_on(pod.host_network) || is_on(pod.host_pid) || is_on(pod.host_ipc),
        "a namespace of the host".into(),
    );
    let security = pod.security_context.clone().unwrap_or_default();
    refuse(security.sysctls.is_some(), "a kernel parameter".into());
    for volume in pod.volumes.iter().flatten() {
        refuse(!is_allowed(volume), format!("the type of volume {}", volume.name));
    }
    let containers = pod.containers.iter().chain(pod.init_containers.iter().flatten());
    for container in containers {
        let own = container.security_context.clone().unwrap_or_default();
        let name = &container.name;
        let mut must = |holds: bool, what: &str| refuse(!holds, format!("{name}: {what}"));
        must(!is_on(own.privileged), "privileged");
        must(
            own.allow_privilege_escalation == Some(false),
            "privilege escalation",
        );
        let capabilities = own.capabilities.unwrap_or_default();
        must(
            capabilities.drop.iter().flatten().any(|dropped| dropped == "ALL"),
            "capabilities are not dropped",
        );
        must(
            capabilities
                .add
                .iter()
                .flatten()
                .all(|added| added == "NET_BIND_SERVICE"),
            "capabilities are added",
        );
        must(
            own.run_as_non_root.or(security.run_as_non_root) == Some(true),
            "may run as root",
        );
        must(
            own.run_as_user.or(security.run_as_user) != Some(0),
            "runs as root",
        );
        let profile = own.seccomp_profile.or_else(|| security.seccomp_profile.clone());
        must(
            profile.is_some_and(|profile| ["RuntimeDefault", "Localhost"].contains(&profile.type_.as_str())),
            "no seccomp profile",
        );
        must(
            own.proc_mount.is_none_or(|mount| mount == "Default"),
            "an unmasked /proc",
        );
        must(
            container
                .ports
                .iter()
                .flatten()
                .all(|port| port.host_port.unwrap_or(0) == 0),
            "a port of the host",
        );
    }
    reasons
}

/// True for the types of volume that the restricted profile allows.
fn is_allowed(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.csi.is_some()
        || volume.downward_api.is_some()
        || volume.empty_dir.is_some()
        || volume.ephemeral.is_some()
        || volume.persistent_volume_claim.is_some()
        || volume.projected.is_some()
        || volume.secret.is_some()
}

#[test]
fn every_namespace_enforces_the_restricted_profile_and_every_pod_passes_it() {
    for overlay in OVERLAYS {
        let Some(documents) = rendered(overlay) else {
            return;
        };
        let namespaces = resources::<Namespace>(&documents, "Namespace");
        assert_eq!(namespaces.len(), 1, "{overlay}");
        let labels = namespaces[0].metadata.labels.clone().unwrap_or_default();
        let enforced = labels.get("pod-security.kubernetes.io/enforce");
        assert_eq!(enforced.map(String::as_str), Some("restricted"), "{overlay}");
        for workload in workloads(overlay) {
            let reasons = refused(&workload.pod);
            assert!(reasons.is_empty(), "{overlay}: {}: {reasons:?}", workload.name);
        }
    }
}

#[test]
fn a_pod_that_is_not_restricted_is_refused() {
    let pod = |text: &str| -> PodSpec {
        let document: Value = serde_yaml_ng::from_str(text).unwrap();
        crate::kubernetes::strictly(&document).unwrap()
    };
    let good = "
securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
volumes: [{name: tmp, emptyDir: {}}]
containers:
  - name: a
    ports: [{containerPort: 80}]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
";
    assert_eq!(refused(&pod(good)), Vec::<String>::new());
    for (from, to, reason) in [
        ("runAsNonRoot: true", "runAsNonRoot: false", "may run as root"),
        (
            "runAsNonRoot: true",
            "runAsNonRoot: true, runAsUser: 0",
            "runs as root",
        ),
        ("RuntimeDefault", "Unconfined", "seccomp"),
        ("emptyDir: {}", "hostPath: {path: /}", "volume tmp"),
        (
            "{containerPort: 80}",
            "{containerPort: 80, hostPort: 80}",
            "port of the host",
        ),
        ("[ALL]", "[NET_RAW]", "not dropped"),
        ("{drop: [ALL]}", "{drop: [ALL], add: [SYS_ADMIN]}", "added"),
        (
            "allowPrivilegeEscalation: false",
            "privileged: true",
            "privileged",
        ),
        (
            "containers:",
            "hostNetwork: true\ncontainers:",
            "namespace of the host",
        ),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        let reasons = refused(&pod(&bad));
        assert!(
            reasons.iter().any(|found| found.contains(reason)),
            "{to}: {reasons:?}"
        );
    }
}

/// Converts a quantity of cores or bytes to a number.
fn number(quantity: &Quantity) -> f64 {
    let units = [
        ("Ki", 1024.0),
        ("Mi", 1024.0 * 1024.0),
        ("Gi", 1024.0 * 1024.0 * 1024.0),
        ("m", 0.001),
    ];
    let found = units
        .iter()
        .find_map(|(unit, factor)| Some((quantity.0.strip_suffix(unit)?, *factor)));
    let (digits, factor) = found.unwrap_or((&quantity.0, 1.0));
    factor * digits.parse::<f64>().unwrap_or_else(|_| panic!("{quantity:?}"))
}

#[test]
fn requests_are_positive_and_within_limits() {
    for overlay in OVERLAYS {
        for workload in workloads(overlay) {
            let pod = &workload.pod;
            for container in pod.containers.iter().chain(pod.init_containers.iter().flatten()) {
                let at = format!("{overlay}: {}: {}", workload.name, container.name);
                let given = container.resources.clone().unwrap_or_else(|| panic!("{at}"));
                let (requests, limits) = (
                    given.requests.unwrap_or_default(),
                    given.limits.unwrap_or_default(),
                );
                for needed in ["cpu", "memory"] {
                    assert!(requests.contains_key(needed), "{at}: no request of {needed}");
                }
                assert!(limits.contains_key("memory"), "{at}: no limit of memory");
                for (resource, request) in &requests {
                    assert!(number(request) > 0.0, "{at}: {resource}");
                    if let Some(limit) = limits.get(resource) {
                        assert!(number(request) <= number(limit), "{at}: {resource}");
                    }
                }
                for volume in pod.volumes.iter().flatten() {
                    if let Some(folder) = &volume.empty_dir {
                        assert!(folder.size_limit.is_some(), "{at}: {} has no limit", volume.name);
                    }
                }
            }
        }
    }
}

/// A drain must be able to move every pod, and never all inference servers at once.
#[test]
fn disruption_budgets_let_drains_through() {
    for overlay in OVERLAYS {
        let Some(documents) = rendered(overlay) else {
            return;
        };
        let budgets = resources::<PodDisruptionBudget>(&documents, "PodDisruptionBudget");
        let workloads = workloads(overlay);
        let mut protected = Vec::new();
        for budget in &budgets {
            let name = budget.metadata.name.clone().unwrap();
            let spec = budget.spec.as_ref().unwrap();
            let labels = spec.selector.as_ref().unwrap().match_labels.clone().unwrap();
            let selected: Vec<&Workload> = workloads
                .iter()
                .filter(|workload| workload.has(&labels))
                .collect();
            assert_eq!(
                selected.len(),
                1,
                "{overlay}: {name} must select the pods of one workload"
            );
            protected.push(selected[0].name.clone());
            // `minAvailable` would block a drain of the last pod for ever.
            assert_eq!(spec.min_available, None, "{overlay}: {name}");
            let most = spec.max_unavailable.as_ref().unwrap();
            let allows = match most {
                IntOrString::Int(count) => *count > 0,
                IntOrString::String(share) => share != "0%",
            };
            assert!(allows, "{overlay}: {name} lets no pod go");
        }
        for name in ["actor", "inference-server", "replay-store"] {
            assert!(protected.iter().any(|found| found == name), "{overlay}: {name}");
        }
    }
}

/// Reason for which an image is not fixed: no tag, or the tag `latest`, and no digest.
fn is_loose(image: &str) -> bool {
    if image.contains("@sha256:") {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':')
        .is_none_or(|(_, tag)| tag.is_empty() || tag == "latest")
}

#[test]
fn images_have_tags_and_none_is_latest() {
    for overlay in OVERLAYS.into_iter().filter(|&overlay| overlay != EVERY_COMPONENT) {
        for workload in workloads(overlay) {
            for container in &workload.pod.containers {
                let image = container.image.clone().unwrap();
                assert!(!is_loose(&image), "{overlay}: {}: {image}", workload.name);
            }
        }
    }
    for loose in [
        "minuet-actor",
        "minuet-actor:latest",
        "localhost:5000/minuet-actor",
    ] {
        assert!(is_loose(loose), "{loose}");
    }
    for fixed in ["minuet-actor:1", "a/b@sha256:00", "localhost:5000/minuet-actor:1"] {
        assert!(!is_loose(fixed), "{fixed}");
    }
}
