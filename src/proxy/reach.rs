//! Whether another user can get at a file, and a place from which he can.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Every folder on the way to `path` lets everybody pass.
pub(super) fn passable(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    path.ancestors().skip(1).all(|folder| fs::metadata(folder).is_ok_and(|meta| meta.mode() & 0o001 != 0))
}

/// Everybody can execute `program` where it lies.
pub(super) fn executable(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|meta| meta.mode() & 0o005 == 0o005) && passable(program)
}

/// Programs made reachable by a link or a copy in the run folder, each once.
#[derive(Debug, Default)]
pub(super) struct Staged(Mutex<HashMap<PathBuf, PathBuf>>);

impl Staged {
    /// `program` itself if everybody can execute it, else its twin in `folder`, which everybody can pass.
    pub(super) fn reachable(&self, program: &Path, folder: &Path) -> io::Result<PathBuf> {
        let meta = fs::metadata(program)?;
        if meta.mode() & 0o111 == 0 {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        let executable = meta.mode() & 0o005 == 0o005;
        if executable && passable(program) {
            return Ok(program.to_owned());
        }
        let mut staged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(twin) = staged.get(program) {
            return Ok(twin.clone());
        }
        let place = folder.join(format!("bin{}", staged.len()));
        fs::create_dir(&place)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
        let twin = place.join(program.file_name().unwrap_or(program.as_os_str()));
        // A link shares the original's mode, so it serves only where that lets others in.
        if !(executable && fs::hard_link(program.canonicalize()?, &twin).is_ok()) {
            fs::copy(program, &twin)?;
            fs::set_permissions(&twin, fs::Permissions::from_mode(0o755))?;
        }
        staged.insert(program.to_owned(), twin.clone());
        Ok(twin)
    }
}
