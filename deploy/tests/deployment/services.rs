//! Tests of Services, probes and monitors against their pods and programs.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::core::v1::{Container, Probe, Service},
    apimachinery::pkg::util::intstr::IntOrString,
};

use service::role::Role;

use crate::{
    custom_resources::ServiceMonitor,
    files::{EVERY_COMPONENT, OVERLAYS, documents, folder, rendered, text},
    kubernetes::{resources, workloads},
    programs::{ROLES, load, port},
};

/// Returns the number of a container's port with this name.
fn numbered(container: &Container, name: &IntOrString, at: &str) -> i32 {
    let IntOrString::String(name) = name else {
        panic!("{at}: a port must be given by its name");
    };
    let ports = container.ports.iter().flatten();
    let found = ports.clone().find(|port| port.name.as_ref() == Some(name));
    found
        .unwrap_or_else(|| panic!("{at}: no port {name}"))
        .container_port
}

#[test]
fn services_point_to_ports_of_pods() {
    for overlay in OVERLAYS {
        let documents = rendered(overlay).unwrap_or_default();
        let workloads = workloads(overlay);
        for service in resources::<Service>(&documents, "Service") {
            let at = format!("{overlay}: {}", service.metadata.name.unwrap());
            let spec = service.spec.unwrap();
            let selector = spec.selector.unwrap();
            let behind: Vec<_> = workloads
                .iter()
                .filter(|workload| workload.has(&selector))
                .collect();
            assert_eq!(behind.len(), 1, "{at}: whose pods?");
            for port in spec.ports.unwrap() {
                let number = numbered(behind[0].container(), &port.target_port.unwrap(), &at);
                // Headless: clients connect to the pod itself, on its own port.
                assert_eq!(spec.cluster_ip.as_deref(), Some("None"), "{at}");
                assert_eq!(number, port.port, "{at}");
            }
        }
    }
}

#[test]
fn probes_use_ports_and_pages_that_exist() {
    for overlay in OVERLAYS {
        for workload in workloads(overlay) {
            let at = format!("{overlay}: {}", workload.name);
            let container = workload.container();
            let probes = [
                &container.startup_probe,
                &container.readiness_probe,
                &container.liveness_probe,
            ];
            for probe in probes.into_iter().flatten() {
                check(probe, container, &at);
            }
        }
    }
}

fn check(probe: &Probe, container: &Container, at: &str) {
    // Another test compares the numbers of `health` and `metrics` with the configuration.
    if let Some(grpc) = &probe.grpc {
        let health = numbered(container, &IntOrString::String("health".into()), at);
        assert_eq!(grpc.port, health, "{at}: a gRPC probe");
        assert_eq!(
            grpc.service, None,
            "{at}: the probe must ask for the whole process"
        );
    } else if let Some(get) = &probe.http_get {
        assert_eq!(get.port, IntOrString::String("metrics".into()), "{at}");
        numbered(container, &get.port, at);
        assert_eq!(get.path.as_deref(), Some("/metrics"), "{at}");
        assert!(get.scheme.is_none() && get.host.is_none(), "{at}");
    } else if let Some(exec) = &probe.exec {
        // The studio listens where no node can ask.
        let command = exec.command.clone().unwrap_or_default();
        assert_eq!(command[..2], ["bash", "-c"], "{at}");
        assert!(
            command[2].ends_with("/dev/tcp/127.0.0.1/7070"),
            "{at}: {command:?}"
        );
    } else {
        let socket = probe.tcp_socket.as_ref();
        numbered(
            container,
            &socket.unwrap_or_else(|| panic!("{at}: an unknown probe")).port,
            at,
        );
    }
}

#[test]
fn the_monitor_finds_every_role() {
    let mut monitors = 0;
    for overlay in OVERLAYS {
        let documents = rendered(overlay).unwrap_or_default();
        let services: Vec<Service> = resources(&documents, "Service");
        for monitor in resources::<ServiceMonitor>(&documents, "ServiceMonitor") {
            let spec = monitor.spec;
            let wanted = spec.selector.match_labels.unwrap();
            let mut jobs = BTreeSet::new();
            for service in &services {
                let name = service.metadata.name.as_deref().unwrap();
                let ports = service.spec.as_ref().unwrap().ports.iter().flatten();
                let is_scraped = |port: &str| spec.endpoints.iter().any(|endpoint| endpoint.port == port);
                if !ports.filter_map(|port| port.name.as_deref()).any(is_scraped) {
                    continue;
                }
                let labels = service.metadata.labels.clone().unwrap_or_default();
                let job = labels.get(spec.job_label.as_ref().unwrap()).expect(name);
                let is_found = |(key, value): (&String, &String)| labels.get(key) == Some(value);
                assert!(wanted.iter().all(is_found), "{overlay}: nobody scrapes {name}");
                jobs.insert(job.clone());
            }
            let mut roles: BTreeSet<String> = ROLES.map(|role| role.name().to_owned()).into();
            if overlay != EVERY_COMPONENT {
                roles.remove(Role::Analysis.name());
            }
            assert_eq!(jobs, roles, "{overlay}");
            monitors += 1;
        }
    }
    assert!(
        monitors == 2 || rendered(OVERLAYS[0]).is_none(),
        "{monitors} monitors"
    );
}

#[test]
fn prometheus_scrapes_every_compose_service_at_its_metrics_page() {
    let config = load(&folder().join("compose/run.toml"), &[]);
    let compose = documents(&text("docker-compose.yml")).remove(0);
    let scraped = documents(&text("prometheus/prometheus.yml")).remove(0);
    let mut jobs = BTreeMap::new();
    for job in scraped["scrape_configs"].as_sequence().unwrap() {
        let name = job["job_name"].as_str().unwrap();
        let role = ROLES.into_iter().find(|role| role.name() == name).expect(name);
        let names = &job["dns_sd_configs"][0];
        assert_eq!(
            names["port"].as_i64(),
            Some(port(role.metrics(&config)).into()),
            "{name}"
        );
        for service in names["names"].as_sequence().unwrap() {
            let service = service.as_str().unwrap();
            assert!(
                !compose["services"][service].is_null(),
                "{name}: no service {service}"
            );
            jobs.insert(service.to_owned(), name.to_owned());
        }
    }
    // Every service with a role's image, except one-off jobs and the studio, which has no such page.
    for (service, described) in compose["services"].as_mapping().unwrap() {
        let service = service.as_str().unwrap();
        let has_page = !["command", "studio"].contains(&service);
        let ours = described["image"].as_str().unwrap().starts_with("minuet-") && has_page;
        assert_eq!(jobs.contains_key(service), ours, "{service}");
    }
}
