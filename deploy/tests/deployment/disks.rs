//! Tests of volume sizes against the programs' disk limits.

use crate::{
    files::{OVERLAYS, rendered},
    kubernetes::workloads,
    programs::configuration,
};

/// Converts a Kubernetes quantity such as `20Gi` to MiB.
fn mib(quantity: &str) -> u64 {
    let (number, factor) = match quantity.strip_suffix("Gi") {
        Some(number) => (number, 1024),
        None => (quantity.strip_suffix("Mi").expect(quantity), 1),
    };
    number.parse::<u64>().unwrap() * factor
}

/// The alert MinuetReplayDisk compares the bytes used with the limit, which must therefore fit the volume closely.
#[test]
fn a_replay_stores_limit_fits_its_volume() {
    for overlay in OVERLAYS {
        if rendered(overlay).is_none() {
            return;
        }
        let stores = workloads(overlay)
            .into_iter()
            .find(|workload| workload.name == "replay-store");
        let stores = stores.unwrap();
        let resources = stores.claims[0].spec.clone().unwrap().resources.unwrap();
        let volume = mib(&resources.requests.unwrap()["storage"].0);
        let replay = configuration(&stores, overlay).replay;
        assert!(
            replay.max_disk_mib + replay.min_free_mib <= volume,
            "{overlay}: the store may take {} MiB and must leave {}, on a volume of {volume}",
            replay.max_disk_mib,
            replay.min_free_mib
        );
        assert!(
            2 * replay.max_disk_mib >= volume,
            "{overlay}: the store may take {} MiB of a volume of {volume}",
            replay.max_disk_mib
        );
    }
}
