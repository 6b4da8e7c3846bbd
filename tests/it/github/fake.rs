//! A GitHub of our own on loopback: HTTP over real sockets, one world a test, told apart by its token.
//!
//! `make contract` puts Stoplight Prism with GitHub's OpenAPI description between: the client then talks to
//! `SIDEGATE_CONTRACT_PROXY`, and Prism passes what it finds well-formed on to `SIDEGATE_CONTRACT_UPSTREAM`, where this
//! server listens then. A request or an answer that GitHub's description does not allow fails the test.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::world::{Call, Reply, Trouble, World, refusal};

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
static NEXT: AtomicU64 = AtomicU64::new(1);

struct Server {
    /// Where the server itself is reached.
    direct: String,
    worlds: Mutex<HashMap<String, Arc<Mutex<World>>>>,
}

/// One test's GitHub.
pub struct Fake {
    pub token: String,
    pub api_url: String,
    world: Arc<Mutex<World>>,
}

impl Fake {
    /// A world whose calls and answers Prism judges where it runs.
    pub fn new() -> Self {
        let proxy = std::env::var("SIDEGATE_CONTRACT_PROXY").unwrap_or_else(|_| SERVER.direct.clone());
        Self::at(proxy)
    }

    /// A world that Prism never sees: for answers that GitHub gives and its description leaves out, and for connections
    /// that break, which Prism would hide.
    pub fn unjudged() -> Self {
        Self::at(SERVER.direct.clone())
    }

    fn at(api_url: String) -> Self {
        // The server must listen before Prism passes anything on.
        let server = &*SERVER;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let token = format!("ghs_secret{number:04}");
        let world = Arc::new(Mutex::new(World::new("octo", &format!("shop-{number}"))));
        lock(&server.worlds).insert(token.clone(), Arc::clone(&world));
        Self { token, api_url, world }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// Calls by method and path without query, in turn.
    pub fn calls(&self) -> Vec<String> {
        let world = self.world();
        let own = format!("/repos/{}/{}", world.owner, world.repo);
        world
            .calls
            .iter()
            .map(|c| format!("{} {}", c.method, c.path.split('?').next().unwrap().replace(&own, "")))
            .collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    fn start() -> Self {
        let at = std::env::var("SIDEGATE_CONTRACT_UPSTREAM").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
        let listener = TcpListener::bind(at).unwrap();
        let direct = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream));
            }
        });
        Self { direct, worlds: Mutex::new(HashMap::new()) }
    }
}

struct Request {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// One request a connection.
fn serve(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
    let Some(request) = read(&stream) else { return };
    let token = request.headers.get("authorization").and_then(|a| a.strip_prefix("Bearer ")).unwrap_or_default();
    let world = lock(&SERVER.worlds).get(token).cloned();
    let Some(world) = world else { return send(&mut stream, &refusal(401, "Bad credentials")) };
    let user_agent = request.headers.get("user-agent").cloned().unwrap_or_default();
    let trouble = {
        let mut world = lock(&world);
        world.calls.push(Call { method: request.method.clone(), path: request.path.clone(), user_agent });
        world.trouble(&request.method, &request.path)
    };
    let act = || lock(&world).answer(&request.method, &request.path, &request.body, &SERVER.direct);
    match trouble {
        None => send(&mut stream, &act()),
        Some(Trouble::Answer(status, headers, body)) => send_text(&mut stream, status, &headers, &body),
        Some(Trouble::Dropped) => {}
        Some(Trouble::Lost) => drop(act()),
        Some(Trouble::Cut) => {
            let text = http(&act());
            let _ = stream.write_all(&text.as_bytes()[..text.len() - 20]);
        }
        Some(Trouble::DoneBut(status)) => {
            act();
            send(&mut stream, &refusal(status, "Something went wrong"));
        }
        Some(Trouble::Silent(time)) => thread::sleep(time),
        Some(Trouble::Noise) => drop(stream.write_all(b"\x16\x03\x01 what?\r\n\r\n")),
        Some(Trouble::After(event)) => {
            event(&mut lock(&world));
            send(&mut stream, &act());
        }
    }
}

fn send(stream: &mut TcpStream, reply: &Reply) {
    let _ = stream.write_all(http(reply).as_bytes());
}

fn http((status, headers, body): &Reply) -> String {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    response(*status, headers, &text)
}

fn send_text(stream: &mut TcpStream, status: u16, headers: &[(&'static str, String)], body: &str) {
    let _ = stream.write_all(response(status, headers, body).as_bytes());
}

fn response(status: u16, headers: &[(&'static str, String)], body: &str) -> String {
    let mut out = format!("HTTP/1.1 {status} x\r\nconnection: close\r\n");
    if status != 204 {
        out += &format!("content-length: {}\r\n", body.len());
    }
    if !headers.iter().any(|(name, _)| *name == "content-type") && status != 204 {
        out += "content-type: application/json; charset=utf-8\r\n";
    }
    for (name, value) in headers {
        out += &format!("{name}: {value}\r\n");
    }
    format!("{out}\r\n{body}")
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?);
    // An Enterprise server has its API below a path.
    let path = path.strip_prefix("/api/v3").unwrap_or(path).to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|v| v == "chunked") {
        body = chunks(&mut reader)?;
    } else if let Some(length) = headers.get("content-length").and_then(|v| v.parse::<usize>().ok()) {
        body.resize(length, 0);
        reader.read_exact(&mut body).ok()?;
    }
    Some(Request { method, path, headers, body })
}

fn chunks(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let from = body.len();
        body.resize(from + size, 0);
        reader.read_exact(&mut body[from..]).ok()?;
        reader.read_line(&mut String::new()).ok()?;
        if size == 0 {
            return Some(body);
        }
    }
}
