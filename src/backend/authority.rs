//! The authority of a run: it signs whatever certificates the configs want to see, and lives in memory only.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::upstream::{Names, PortCounts, San, Speaks, Trust};

/// One authority, one key for servers and one for clients, all ECDSA on P-256.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    server_key: KeyPair,
    trust: Trust,
}

/// Base and head are to see the same certificates, wherever in a run they are started: there is one authority a process.
static OF_THE_RUN: OnceLock<Result<Authority, String>> = OnceLock::new();

impl Authority {
    /// Made when first asked for.
    ///
    /// # Errors
    /// No randomness for keys.
    pub fn of_the_run() -> io::Result<&'static Self> {
        let made = OF_THE_RUN.get_or_init(|| Self::generate().map_err(|e| e.to_string()));
        made.as_ref().map_err(|e| io::Error::other(format!("cannot make certificates: {e}")))
    }

    /// What proxies with such upstreams are given: nothing, if none of them speaks TLS.
    ///
    /// # Errors
    /// No randomness for keys.
    pub fn trust_for(counts: PortCounts) -> io::Result<Option<Trust>> {
        match counts.each().any(Speaks::is_tls) {
            true => Self::of_the_run().map(|authority| Some(authority.trust.clone())),
            false => Ok(None),
        }
    }

    /// What the proxies are given.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    fn generate() -> Result<Self, rcgen::Error> {
        let mut ca = params("sidegate test authority", 1);
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;
        let client_key = KeyPair::generate()?;
        let mut client = params("sidegate client", 2);
        client.subject_alt_names = vec![SanType::DnsName(Ia5String::try_from("client.sidegate.test")?)];
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client = client.signed_by(&client_key, &issuer)?;
        let trust = Trust { ca: issuer.pem(), client_chain: client.pem(), client_key: client_key.serialize_pem() };
        Ok(Self { issuer, server_key: KeyPair::generate()?, trust })
    }

    /// A server's certificate for the host asked for by SNI, if any, and all `names`.
    pub(super) fn certify(&self, host: Option<&str>, names: &Names) -> io::Result<Arc<CertifiedKey>> {
        let certificate = self.sign(host, names).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.server_key.serialize_der()));
        let key = rustls::crypto::ring::sign::any_supported_type(&key).map_err(io::Error::other)?;
        Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
    }

    fn sign(&self, host: Option<&str>, names: &Names) -> Result<Certificate, rcgen::Error> {
        let mut server = params("sidegate backend", 3);
        let host = host.map_or(San::Dns("localhost".to_owned()), |host| match host.parse::<IpAddr>() {
            Ok(address) => San::Ip(address),
            Err(_) => San::Dns(host.to_owned()),
        });
        // A name that cannot stand in a certificate matches nothing: the handshake fails, as it should.
        let wanted = std::iter::once(&host).chain(names.iter().filter(|name| **name != host));
        server.subject_alt_names = wanted.filter_map(entry).collect();
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.signed_by(&self.server_key, &self.issuer)
    }
}

/// Valid for longer than any machine's clock is wrong; serial numbers of one length, so that sizes do not differ.
fn params(name: &str, serial: u8) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    params.serial_number = Some(SerialNumber::from_slice(&[0x51, 0xDE, 0x6A, 0x7E, serial]));
    params.use_authority_key_identifier_extension = true;
    params
}

fn entry(name: &San) -> Option<SanType> {
    let text = |text: &String| Ia5String::try_from(text.as_str()).ok();
    match name {
        San::Dns(name) => text(name).map(SanType::DnsName),
        San::Uri(name) => text(name).map(SanType::URI),
        San::Email(name) => text(name).map(SanType::Rfc822Name),
        San::Ip(address) => Some(SanType::IpAddress(*address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_authority_and_certificates_are_of_one_size() {
        let authority = Authority::of_the_run().unwrap();
        assert!(std::ptr::eq(authority, Authority::of_the_run().unwrap()));
        let names = Names::from([San::Uri("spiffe://td/a".to_owned()), San::Ip([10, 0, 0, 1].into())]);
        let size = || authority.certify(Some("a.example"), &names).unwrap().cert[0].len();
        let sizes: Vec<usize> = (0..50).map(|_| size()).collect();
        // The signature is two numbers, each a byte longer if its first bit is set.
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(most - least <= 4, "{sizes:?}");
        assert_eq!(format!("{:?}", authority.trust()), "Trust(***)");
    }
}
