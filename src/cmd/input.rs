//! The config a user names, with the files it names in turn, as a static bootstrap.

use std::cell::RefCell;

use crate::envoy::input;
use crate::exit::Failure;
use crate::files::{self, ConfigFile};
use crate::yaml::Document;

/// The bootstrap, and a hash of all texts it was read from.
pub fn read(config: &ConfigFile) -> Result<(Document, String), Failure> {
    let text = config.read()?;
    let hashes = RefCell::new(vec![files::sha256(&text)]);
    let beside = |path: &str| {
        let (name, text) = config.beside(path)?;
        hashes.borrow_mut().push(files::sha256(&text));
        Ok((name, text))
    };
    let document = input::read(&config.name, &text, &beside).map_err(Failure::usage)?;
    let hashes = hashes.into_inner();
    let sha256 = if let [only] = hashes.as_slice() { only.clone() } else { files::sha256(&hashes.concat()) };
    Ok((document, sha256))
}
