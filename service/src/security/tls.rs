//! TLS: certificates and keys from PEM files, for servers (rustls) and for clients (tonic's endpoints).
//!
//! Certificates can be renewed while processes run: servers ([`crate::listener`]) and clients ([`crate::connect`]) read their files
//! again at intervals. If a file cannot be used then, or has an expired certificate, the error is logged and the previous certificate
//! stays in use.

use std::sync::Arc;

use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use x509_parser::time::ASN1Time;

use super::{Named, SecurityError};
use config::SecurityConfig;

/// ALPN name of HTTP/2.
pub(crate) const HTTP2: &[u8] = b"h2";
/// ALPN name of HTTP/1.1.
pub(crate) const HTTP1: &[u8] = b"http/1.1";

/// Files of a server.
#[derive(Clone, Debug)]
pub struct ServerFiles {
    certificate: Named,
    key: Named,
    client_ca: Option<Named>,
    /// ALPN name of the served protocol.
    protocol: &'static [u8],
}

impl ServerFiles {
    /// Returns the files named in `config`, for a server of the protocol with this ALPN name; `None` if servers use plaintext.
    pub(crate) fn of(config: &SecurityConfig, protocol: &'static [u8]) -> Option<Self> {
        if config.certificate.as_os_str().is_empty() {
            return None;
        }
        let has_authority = !config.client_ca.as_os_str().is_empty();
        Some(Self {
            certificate: Named::new("certificate", &config.certificate),
            key: Named::new("key", &config.key),
            client_ca: has_authority.then(|| Named::new("client_ca", &config.client_ca)),
            protocol,
        })
    }

    /// Reads the files.
    ///
    /// # Errors
    /// [`SecurityError`] naming the file that cannot be used.
    pub fn read(&self) -> Result<Arc<ServerConfig>, SecurityError> {
        let chain = certificates(&self.certificate, &self.certificate.read()?)?;
        let key = private_key(&self.key, &self.key.read()?)?;
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| self.certificate.fault(error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file, &file.read()?)? {
                    roots.add(certificate).map_err(|error| file.fault(error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| file.fault(error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| {
            self.key
                .fault(format!("it is not the key of the certificate: {error}"))
        })?;
        config.alpn_protocols.push(self.protocol.to_vec());
        Ok(Arc::new(config))
    }

    /// Checks that the server's certificate has not expired.
    ///
    /// # Errors
    /// [`SecurityError`] with the file and the time.
    pub fn check_expiry(&self) -> Result<(), SecurityError> {
        check_expiry(&self.certificate)
    }
}

/// Returns the cryptography provider ring. It is named explicitly, so that the features of other dependencies cannot change it.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn private_key(file: &Named, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, SecurityError> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|_| file.fault("no private key in PEM form"))
}

fn certificates(file: &Named, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(file.fault("no certificate in PEM form")),
        Err(error) => Err(file.fault(error)),
    }
}

/// Checks that the first certificate in a file has not expired.
fn check_expiry(file: &Named) -> Result<(), SecurityError> {
    let chain = certificates(file, &file.read()?)?;
    if let Some(own) = chain.first() {
        let (_, own) = x509_parser::parse_x509_certificate(own).map_err(|error| file.fault(error))?;
        let end = own.validity().not_after;
        if end < ASN1Time::now() {
            return Err(file.fault(format!("the certificate expired on {}", end.to_datetime().date())));
        }
    }
    Ok(())
}

/// Files of a client.
#[derive(Clone, Debug)]
pub struct ClientFiles {
    ca: Named,
    identity: Option<(Named, Named)>,
}

impl ClientFiles {
    /// Returns the files named in `config`; `None` if clients use plaintext.
    pub fn of(config: &SecurityConfig) -> Option<Self> {
        if config.ca.as_os_str().is_empty() {
            return None;
        }
        let has_identity = !config.client_certificate.as_os_str().is_empty();
        Some(Self {
            ca: Named::new("ca", &config.ca),
            identity: has_identity.then(|| {
                (
                    Named::new("client_certificate", &config.client_certificate),
                    Named::new("client_key", &config.client_key),
                )
            }),
        })
    }

    /// Reads the files.
    ///
    /// # Errors
    /// [`SecurityError`] naming the file that cannot be used.
    pub fn read(&self) -> Result<ClientPem, SecurityError> {
        let ca = self.ca.read()?;
        certificates(&self.ca, &ca)?;
        let identity = match &self.identity {
            None => None,
            Some((certificate, key)) => {
                let chain = certificate.read()?;
                certificates(certificate, &chain)?;
                let key_bytes = key.read()?;
                private_key(key, &key_bytes)?;
                Some((chain, key_bytes))
            }
        };
        Ok(ClientPem { ca, identity })
    }

    /// Checks that the client's certificate, if it has one, has not expired.
    ///
    /// # Errors
    /// [`SecurityError`] with the file and the time.
    pub fn check_expiry(&self) -> Result<(), SecurityError> {
        match &self.identity {
            None => Ok(()),
            Some((certificate, _)) => check_expiry(certificate),
        }
    }
}

/// Contents of the files of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientPem {
    ca: Vec<u8>,
    /// Certificate and private key.
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl ClientPem {
    /// Returns the settings of TLS for a server whose certificate must contain `server_name`.
    pub fn config(&self, server_name: &str) -> ClientTlsConfig {
        let config = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&self.ca))
            .domain_name(server_name);
        match &self.identity {
            None => config,
            Some((certificate, key)) => config.identity(Identity::from_pem(certificate, key)),
        }
    }
}
