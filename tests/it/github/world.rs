//! What GitHub would remember of one repository: pull requests, comments, who may do what, and which calls go wrong.

use serde_json::{Value, json};

/// Who a token belongs to.
#[derive(Clone)]
pub struct Account {
    pub login: &'static str,
    /// `Bot` or `User`.
    pub kind: &'static str,
    pub writes: bool,
    /// May change comments of others.
    pub owns: bool,
    /// May ask who it is: a person's token may, a workflow's may not.
    pub knows_itself: bool,
}

impl Account {
    /// The token of a workflow that may write to pull requests.
    pub fn workflow() -> Self {
        Self { login: "github-actions[bot]", kind: "Bot", writes: true, owns: false, knows_itself: false }
    }

    /// The token of a workflow that a fork's pull request started.
    pub fn read_only() -> Self {
        Self { writes: false, ..Self::workflow() }
    }

    pub fn person(login: &'static str) -> Self {
        Self { login, kind: "User", writes: true, owns: false, knows_itself: true }
    }
}

#[derive(Clone)]
pub struct Pull {
    pub number: u64,
    pub sha: String,
    /// `None`: the fork was deleted.
    pub head_repository: Option<u64>,
    pub head_owner: String,
    pub branch: String,
    pub open: bool,
    pub locked: bool,
}

#[derive(Clone, Debug)]
pub struct Comment {
    pub id: u64,
    pub issue: u64,
    pub login: String,
    pub kind: String,
    pub body: String,
}

/// What goes wrong with one call.
#[derive(Clone)]
pub enum Trouble {
    /// Not done; this status, these headers, this text.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Not done; the connection closes without a word.
    Dropped,
    /// Done; the connection closes without a word.
    Lost,
    /// Done; only half of the answer arrives.
    Cut,
    /// Done; this status instead.
    DoneBut(u16),
    /// Not done, and no answer for so long.
    Silent(std::time::Duration),
    /// Bytes that are no HTTP.
    Noise,
    /// Done, after something else happened meanwhile.
    After(fn(&mut World)),
}

pub struct Scripted {
    /// Which calls: method and the end of the path.
    pub method: &'static str,
    pub path: &'static str,
    /// How often yet.
    pub times: u32,
    pub trouble: Trouble,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    /// With the query.
    pub path: String,
    pub user_agent: String,
}

pub struct World {
    pub owner: String,
    pub repo: String,
    pub account: Account,
    pub pulls: Vec<Pull>,
    pub comments: Vec<Comment>,
    pub script: Vec<Scripted>,
    pub calls: Vec<Call>,
    /// Lists leave out what was written last.
    pub list_lags: bool,
    /// For `Trouble::After`.
    pub comments_to_come: Vec<String>,
    next_id: u64,
}

/// Identity of the repository everything is about.
pub const REPOSITORY: u64 = 4711;
const SHAPES: &str = include_str!("../../data/github/shapes.json");
const MAX_BODY: usize = 65_536;

/// Status, further headers, body.
pub type Reply = (u16, Vec<(&'static str, String)>, Value);

impl World {
    pub fn new(owner: &str, repo: &str) -> Self {
        Self {
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            account: Account::workflow(),
            pulls: Vec::new(),
            comments: Vec::new(),
            script: Vec::new(),
            calls: Vec::new(),
            list_lags: false,
            comments_to_come: Vec::new(),
            next_id: 1000,
        }
    }

    pub fn add_pull(&mut self, number: u64, sha: &str) -> &mut Pull {
        self.pulls.push(Pull {
            number,
            sha: sha.to_owned(),
            head_repository: Some(REPOSITORY),
            head_owner: self.owner.clone(),
            branch: "change".to_owned(),
            open: true,
            locked: false,
        });
        self.pulls.last_mut().unwrap()
    }

    pub fn add_comment(&mut self, issue: u64, account: &Account, body: &str) -> u64 {
        self.next_id += 1;
        let (login, kind) = (account.login.to_owned(), account.kind.to_owned());
        self.comments.push(Comment { id: self.next_id, issue, login, kind, body: body.to_owned() });
        self.next_id
    }

    pub fn goes_wrong(&mut self, method: &'static str, path: &'static str, times: u32, trouble: Trouble) {
        self.script.push(Scripted { method, path, times, trouble });
    }

    /// The trouble that this call is in, if any.
    pub fn trouble(&mut self, method: &str, path: &str) -> Option<Trouble> {
        let bare = path.split('?').next().unwrap_or_default();
        let due = |s: &&mut Scripted| s.times > 0 && s.method == method && bare.ends_with(s.path);
        let scripted = self.script.iter_mut().find(due)?;
        scripted.times -= 1;
        Some(scripted.trouble.clone())
    }

    /// Does what a call asks for. `host` is where the next page is.
    pub fn answer(&mut self, method: &str, path: &str, body: &[u8], host: &str) -> Reply {
        let (route, query) = path.split_once('?').unwrap_or((path, ""));
        let own = format!("/repos/{}/{}/", self.owner, self.repo);
        if (method, route) == ("GET", "/user") {
            return self.who();
        }
        let Some(rest) = route.strip_prefix(&own) else { return refusal(404, "Not Found") };
        let parts: Vec<&str> = rest.split('/').collect();
        match (method, parts.as_slice()) {
            ("GET", ["pulls"]) => self.list_pulls(query),
            ("GET", ["pulls", number]) => match self.pull(number) {
                Some(pull) => (200, Vec::new(), self.show_pull(pull)),
                None => refusal(404, "Not Found"),
            },
            ("GET", ["issues", number, "comments"]) if self.pull(number).is_some() => self.list(number, query, host),
            ("POST", ["issues", number, "comments"]) => self.create(number, body),
            ("PATCH", ["issues", "comments", id]) => self.update(id, body),
            ("DELETE", ["issues", "comments", id]) => self.delete(id),
            _ => refusal(404, "Not Found"),
        }
    }

    fn who(&self) -> Reply {
        if !self.account.knows_itself {
            return refusal(403, "Resource not accessible by integration");
        }
        let mut user = shape("self");
        (user["login"], user["type"]) = (json!(self.account.login), json!(self.account.kind));
        (200, Vec::new(), user)
    }

    fn pull(&self, number: &str) -> Option<&Pull> {
        self.pulls.iter().find(|p| p.number.to_string() == number)
    }

    fn show_pull(&self, pull: &Pull) -> Value {
        let mut shown = shape("pull");
        shown["number"] = json!(pull.number);
        shown["locked"] = json!(pull.locked);
        shown["state"] = json!(if pull.open { "open" } else { "closed" });
        (shown["head"]["sha"], shown["head"]["ref"]) = (json!(pull.sha), json!(pull.branch));
        match pull.head_repository {
            Some(id) => shown["head"]["repo"]["id"] = json!(id),
            None => shown["head"]["repo"] = Value::Null,
        }
        shown["base"]["repo"]["id"] = json!(REPOSITORY);
        shown
    }

    fn list_pulls(&self, query: &str) -> Reply {
        let head = parameter(query, "head").map(|h| h.replace("%3A", ":").replace("%2F", "/"));
        let matches =
            |p: &&Pull| p.open && head.as_ref().is_none_or(|h| *h == format!("{}:{}", p.head_owner, p.branch));
        (200, Vec::new(), self.pulls.iter().filter(matches).map(|p| self.show_pull(p)).collect())
    }

    fn list(&self, number: &str, query: &str, host: &str) -> Reply {
        let number_of =
            |name: &str, default: usize| parameter(query, name).and_then(|v| v.parse().ok()).unwrap_or(default);
        let (size, page) = (number_of("per_page", 30).clamp(1, 100), number_of("page", 1).max(1));
        let mut all: Vec<&Comment> = self.comments.iter().filter(|c| c.issue.to_string() == number).collect();
        if self.list_lags {
            all.pop();
        }
        let shown = all.iter().skip((page - 1) * size).take(size).map(|c| self.show(c)).collect();
        let mut headers = Vec::new();
        if all.len() > page * size {
            let url = format!("{host}/repos/{}/{}/issues/{number}/comments", self.owner, self.repo);
            let (next, last) = (page + 1, all.len().div_ceil(size));
            let link = |page: usize, rel: &str| format!("<{url}?per_page={size}&page={page}>; rel=\"{rel}\"");
            headers.push(("link", format!("{}, {}", link(next, "next"), link(last, "last"))));
        }
        (200, headers, shown)
    }

    fn show(&self, comment: &Comment) -> Value {
        let mut shown = shape("comment");
        shown["id"] = json!(comment.id);
        shown["body"] = json!(comment.body);
        shown["html_url"] = json!(format!(
            "https://git.example/{}/{}/pull/{}#issuecomment-{}",
            self.owner, self.repo, comment.issue, comment.id
        ));
        shown["user"] = shape("user");
        (shown["user"]["login"], shown["user"]["type"]) = (json!(comment.login), json!(comment.kind));
        shown
    }

    fn create(&mut self, number: &str, body: &[u8]) -> Reply {
        let Some(pull) = self.pull(number).cloned() else { return refusal(404, "Not Found") };
        if !self.account.writes {
            return not_permitted();
        }
        if pull.locked {
            return refusal(403, "Unable to create comment because issue is locked.");
        }
        match text_of(body) {
            Ok(text) => {
                let account = self.account.clone();
                let id = self.add_comment(pull.number, &account, &text);
                let comment = self.comments.iter().find(|c| c.id == id).unwrap();
                (201, Vec::new(), self.show(comment))
            }
            Err(reply) => reply,
        }
    }

    fn update(&mut self, id: &str, body: &[u8]) -> Reply {
        let text = match text_of(body) {
            Ok(text) => text,
            Err(reply) => return reply,
        };
        let account = self.account.clone();
        let Some(comment) = self.comments.iter_mut().find(|c| c.id.to_string() == id) else {
            return refusal(404, "Not Found");
        };
        if !account.writes || (!account.owns && account.login != comment.login) {
            return not_permitted();
        }
        comment.body = text;
        let comment = comment.clone();
        (200, Vec::new(), self.show(&comment))
    }

    fn delete(&mut self, id: &str) -> Reply {
        let login = self.account.login;
        let Some(at) = self.comments.iter().position(|c| c.id.to_string() == id) else {
            return refusal(404, "Not Found");
        };
        if !self.account.writes || (!self.account.owns && self.comments[at].login != login) {
            return not_permitted();
        }
        self.comments.remove(at);
        (204, Vec::new(), Value::Null)
    }
}

fn shape(name: &str) -> Value {
    serde_json::from_str::<Value>(SHAPES).unwrap()[name].clone()
}

fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|p| p.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
}

pub fn refusal(status: u16, message: &str) -> Reply {
    (status, Vec::new(), json!({"message": message, "documentation_url": "https://docs.example/rest"}))
}

fn not_permitted() -> Reply {
    let (status, _, body) = refusal(403, "Resource not accessible by integration");
    (status, vec![("x-accepted-github-permissions", "issues=write; pull_requests=write".to_owned())], body)
}

fn text_of(body: &[u8]) -> Result<String, Reply> {
    let value: Value = serde_json::from_slice(body).map_err(|_| refusal(400, "Problems parsing JSON"))?;
    let text = value.get("body").and_then(Value::as_str).ok_or_else(|| refusal(422, "body is missing"))?;
    if text.encode_utf16().count() > MAX_BODY {
        let (status, headers, mut body) = refusal(422, "Validation Failed");
        body["errors"] = json!([{"resource": "IssueComment", "code": "unprocessable", "field": "data",
            "message": "Body is too long (maximum is 65536 characters)"}]);
        return Err((status, headers, body));
    }
    Ok(text.to_owned())
}
