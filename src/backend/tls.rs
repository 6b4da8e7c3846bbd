//! TLS of the backend: a certificate for every host asked for, and the protocol that client and cluster agree on.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::authority::Authority;
use crate::upstream::Names;

const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Takes TLS connections on one port.
#[derive(Clone)]
pub(super) struct Tls {
    /// For clients that offer a protocol of ours.
    agreeing: Arc<ServerConfig>,
    /// For the others: what is not agreed on is seen by what the client begins with.
    silent: Arc<ServerConfig>,
}

impl Tls {
    pub fn new(names: &Names, ask_client: bool) -> io::Result<Self> {
        let authority = Authority::of_the_run()?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?;
        let builder = match ask_client {
            true => builder.with_client_cert_verifier(Arc::new(AnyClient(provider))),
            false => builder.with_no_client_auth(),
        };
        let hosts = Hosts { authority, names: names.clone(), known: Mutex::default() };
        let mut silent = builder.with_cert_resolver(Arc::new(hosts));
        // Clients that resume sessions find a server that does.
        silent.ticketer = ring::Ticketer::new().map_err(io::Error::other)?;
        let mut agreeing = silent.clone();
        agreeing.alpn_protocols = ALPN.iter().map(|name| name.to_vec()).collect();
        Ok(Self { agreeing: Arc::new(agreeing), silent: Arc::new(silent) })
    }

    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let offered = hello.client_hello().alpn().is_some_and(|mut offers| offers.any(|offer| ALPN.contains(&offer)));
        hello.into_stream(Arc::clone(if offered { &self.agreeing } else { &self.silent })).await
    }
}

/// Certificates by the host asked for, signed when first asked for.
struct Hosts {
    authority: &'static Authority,
    names: Names,
    known: Mutex<HashMap<Option<String>, Arc<CertifiedKey>>>,
}

/// A client that asks for ever new hosts is given certificates, but they are not kept.
const MOST_HOSTS: usize = 4096;

impl std::fmt::Debug for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosts").field("names", &self.names).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Hosts {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let host = hello.server_name().map(str::to_owned);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = known.get(&host) {
            return Some(Arc::clone(key));
        }
        let key = self.authority.certify(host.as_deref(), &self.names).ok()?;
        if known.len() < MOST_HOSTS {
            known.insert(host, Arc::clone(&key));
        }
        Some(key)
    }
}

/// Whoever shows a certificate and holds its key is let in: real servers trust other authorities than ours, and what the
/// proxy does is the same.
#[derive(Debug)]
struct AnyClient(Arc<CryptoProvider>);

impl ClientCertVerifier for AnyClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
