//! Certificate authorities and certificates made for one test.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// A certificate authority.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// Writes the authority's own certificate into `folder`.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, &self.pem).unwrap();
        path
    }

    /// Writes a certificate for `host` and its key into `folder`.
    pub fn sign(&self, folder: &Path, name: &str, host: &str) -> (PathBuf, PathBuf) {
        self.sign_until(folder, name, host, 2999)
    }

    /// Writes a certificate for `host`, valid from 1990 to the beginning of `year`, and its key into `folder`.
    pub fn sign_until(&self, folder: &Path, name: &str, host: &str, year: i32) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.not_before = date_time_ymd(1990, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let paths = (
            folder.join(format!("{name}.pem")),
            folder.join(format!("{name}.key")),
        );
        std::fs::write(&paths.0, certificate.pem()).unwrap();
        std::fs::write(&paths.1, key.serialize_pem()).unwrap();
        paths
    }
}
