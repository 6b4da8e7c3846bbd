//! Counts of a stored baseline that stand in for counting its config again: counts travel between machines of one class.

use crate::record::{Arm, ClassCost, Cost, CountingClass, ProxyId, RequestClass};

/// What today's counts are made with.
pub(super) struct Today<'a> {
    pub machine: &'a CountingClass,
    pub proxy_sha256: &'a str,
    pub classes: &'a [RequestClass],
}

/// The stored counts, in the order of today's classes; a class that was not stored has that said in its entry.
///
/// # Errors
/// Why none of them may stand beside today's, in a part of a sentence.
pub(super) fn taken(stored: Option<&Cost>, proxy: &ProxyId, today: &Today) -> Result<Vec<ClassCost>, String> {
    let cost = stored.ok_or("it holds no counts")?;
    let arm = cost.arms.iter().find(|arm| arm.arm == Arm::Head).ok_or("it holds no counts")?;
    let machine = cost.machine.as_ref().ok_or("it does not say what its counts were made with")?;
    let mut parts = machine.parts().into_iter().zip(today.machine.parts());
    if let Some(((what, then), (_, now))) = parts.find(|(then, now)| then != now) {
        return Err(format!("its counts were made with another {what} ({then}, now {now})"));
    }
    if proxy.sha256 != today.proxy_sha256 {
        return Err(format!("its counts are of another proxy binary ({})", proxy.version));
    }
    let of = |wanted: &RequestClass| {
        let at = cost.classes.iter().position(|class| class.is_same_request(wanted))?;
        arm.classes.get(at).filter(|counts| counts.failed.is_none()).cloned()
    };
    let found: Vec<Option<ClassCost>> = today.classes.iter().map(of).collect();
    if found.iter().all(Option::is_none) {
        return Err("its counts are of other requests".to_owned());
    }
    let absent = || ClassCost { failed: Some("not among the stored counts".to_owned()), ..ClassCost::default() };
    Ok(found.into_iter().map(|counts| counts.unwrap_or_else(absent)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ArmCost, Window};

    fn class(path: &str) -> RequestClass {
        RequestClass {
            name: format!("GET {path}"),
            method: "GET".to_owned(),
            authority: "a".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body_bytes: 0,
            new_connection: false,
            route: String::new(),
        }
    }

    fn machine() -> CountingClass {
        CountingClass {
            architecture: "x86_64".to_owned(),
            instruction_set: "x86-64-v3".to_owned(),
            libc: "glibc 2.36".to_owned(),
            valgrind: "valgrind-3.19.0".to_owned(),
            workload_version: 2,
        }
    }

    fn counts(instructions: u64) -> ClassCost {
        let window = Window { requests: 1, instructions, syscalls: 1, clock_reads: 0 };
        ClassCost { windows: vec![window; 3], ..ClassCost::default() }
    }

    /// Counts of `/a` and `/b`.
    fn cost() -> Cost {
        let arm = ArmCost { arm: Arm::Head, classes: vec![counts(1), counts(2)] };
        Cost { machine: Some(machine()), classes: vec![class("/a"), class("/b")], arms: vec![arm], ..Cost::default() }
    }

    fn proxy(sha256: &str) -> ProxyId {
        ProxyId { kind: "envoy".to_owned(), version: "1.40.0".to_owned(), sha256: sha256.to_owned() }
    }

    fn taken_from(cost: Option<&Cost>, machine: &CountingClass, paths: &[&str]) -> Result<Vec<ClassCost>, String> {
        let classes: Vec<RequestClass> = paths.iter().map(|path| class(path)).collect();
        taken(cost, &proxy("1"), &Today { machine, proxy_sha256: "1", classes: &classes })
    }

    #[test]
    fn counts_come_in_the_order_of_todays_classes() {
        let found = taken_from(Some(&cost()), &machine(), &["/b", "/new", "/a"]).unwrap();
        assert_eq!((&found[0], &found[2]), (&counts(2), &counts(1)));
        assert_eq!(found[1].failed.as_deref(), Some("not among the stored counts"));
    }

    #[test]
    fn what_forbids_comparing_is_said() {
        let why = |cost: Option<&Cost>, machine: &CountingClass, paths: &[&str]| {
            taken_from(cost, machine, paths).expect_err("not comparable")
        };
        assert_eq!(why(None, &machine(), &["/a"]), "it holds no counts");
        let other = CountingClass { valgrind: "valgrind-3.25.1".to_owned(), ..machine() };
        let told = why(Some(&cost()), &other, &["/a"]);
        assert_eq!(told, "its counts were made with another valgrind (valgrind-3.19.0, now valgrind-3.25.1)");
        assert_eq!(why(Some(&cost()), &machine(), &["/c"]), "its counts are of other requests");
        let today = machine();
        let today = Today { machine: &today, proxy_sha256: "2", classes: &[class("/a")] };
        let told = taken(Some(&cost()), &proxy("1"), &today).expect_err("not comparable");
        assert_eq!(told, "its counts are of another proxy binary (1.40.0)");
    }
}
