//! CPU quotas that control groups impose on us: they throttle in bursts, so a report must say so.

use std::fs;
use std::path::{Path, PathBuf};

/// The tightest `cpu.max` (`quota period`, microseconds) of our control group and its parents; `None` where none
/// limits us. Version 1's `cpu.cfs_quota_us` is told in the same form.
pub fn cpu_quota() -> Option<String> {
    quota(&fs::read_to_string("/proc/self/cgroup").ok()?, Path::new("/sys/fs/cgroup"))
}

fn quota(own: &str, mount: &Path) -> Option<String> {
    let mut tightest: Option<(f64, String)> = None;
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let root = match controllers {
            "" => mount.to_owned(),
            names if names.split(',').any(|name| name == "cpu") => mount.join("cpu"),
            _ => continue,
        };
        for folder in lineage(&root, path) {
            let Some((share, text)) = limit(&folder) else { continue };
            if tightest.as_ref().is_none_or(|(least, _)| share < *least) {
                tightest = Some((share, text));
            }
        }
    }
    tightest.map(|(_, text)| text)
}

/// The group's folder and its parents' up to the mount point. In a container the path may lie outside what is
/// mounted; then only the mount point itself exists, and is ours.
fn lineage(root: &Path, path: &str) -> Vec<PathBuf> {
    let own = root.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect()
}

fn limit(folder: &Path) -> Option<(f64, String)> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned());
    let text =
        read("cpu.max").or_else(|| Some(format!("{} {}", read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?)))?;
    let (quota, period) = text.split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| (quota / period, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_of_all_levels_counts() {
        let mount = tempfile::tempdir().unwrap();
        let inner = mount.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let own = "1:memory:/x\n0::/a/b\n";
        assert_eq!(quota(own, mount.path()), None);
        fs::write(inner.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!(quota(own, mount.path()), None);
        fs::write(mount.path().join("a/cpu.max"), "150000 100000\n").unwrap();
        assert_eq!(quota(own, mount.path()).as_deref(), Some("150000 100000"));
        fs::write(inner.join("cpu.max"), "50000 100000\n").unwrap();
        assert_eq!(quota(own, mount.path()).as_deref(), Some("50000 100000"));
    }

    #[test]
    fn version_1_is_told_alike() {
        let mount = tempfile::tempdir().unwrap();
        let group = mount.path().join("cpu/g");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.cfs_quota_us"), "-1").unwrap();
        fs::write(group.join("cpu.cfs_period_us"), "100000").unwrap();
        assert_eq!(quota("4:cpu,cpuacct:/g\n", mount.path()), None);
        fs::write(group.join("cpu.cfs_quota_us"), "200000").unwrap();
        assert_eq!(quota("4:cpu,cpuacct:/g\n", mount.path()).as_deref(), Some("200000 100000"));
    }
}
