//! A browser for a test, and a studio that it visits. Chromium's driver is asked in the W3C WebDriver protocol.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use studio::{app::App, run::Run, security::door::Door, server};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Driver of Chromium in Debian's package `chromium-driver`.
const DRIVER: &str = "chromedriver";
/// Time for which a test waits for the page.
const PATIENCE: Duration = Duration::from_secs(120);
/// Name of the field with an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one tab, and the studio that it visits.
pub struct Browser {
    /// Begin of the studio's addresses.
    site: String,
    session: String,
    driver: Driver,
    ending: CancellationToken,
    /// Runtime of the studio.
    runtime: Runtime,
}

/// The driver's process, which ends with the test.
struct Driver {
    process: Child,
    port: u16,
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The way in which a test plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    Click,
    Drag,
    Touch,
    Keys,
}

/// Keys by their numbers in the protocol.
pub mod key {
    pub const TAB: char = '\u{e004}';
    pub const ENTER: char = '\u{e007}';
    pub const END: char = '\u{e010}';
    pub const HOME: char = '\u{e011}';
    pub const LEFT: char = '\u{e012}';
    pub const UP: char = '\u{e013}';
    pub const RIGHT: char = '\u{e014}';
    pub const DOWN: char = '\u{e015}';
}

impl Driver {
    /// Starts the driver. `None`, and a counted skip, where it is not installed.
    fn start() -> Option<Self> {
        let started = Command::new(DRIVER)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut process) = started else {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            test_support::skip(
                &test,
                "there is no chromedriver; apt-get install chromium chromium-driver",
            );
            return None;
        };
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_suffix('.')?.rsplit_once("on port ")?.1.parse().ok())
            .expect("the driver prints its port");
        Some(Self { process, port })
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let body = if method == "POST" {
            body.to_string()
        } else {
            String::new()
        };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        // The driver keeps the connection open, so the length says where the reply ends.
        let mut reply = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let mut line = String::new();
            assert!(
                reply.read_line(&mut line).unwrap() > 0,
                "the driver has closed: {head}"
            );
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head += &line;
        }
        let mut body = vec![0; length];
        reply.read_exact(&mut body).unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        match head.starts_with("HTTP/1.1 200") {
            true => Ok(answer["value"].clone()),
            false => Err(answer["value"].clone()),
        }
    }
}

impl Browser {
    /// Starts a browser and a studio without a run. `None`, and a counted skip, where Chromium's driver is not installed.
    pub fn start() -> Option<Self> {
        Self::of(None)
    }

    /// Starts a browser and a studio that shows a run. `None`, and a counted skip, where Chromium's driver is not installed.
    pub fn of(run: Option<Run>) -> Option<Self> {
        Self::at(Ipv4Addr::LOCALHOST, run)
    }

    /// Starts a browser and a studio that listens on `address`. The browser takes every certificate.
    pub fn at(address: Ipv4Addr, run: Option<Run>) -> Option<Self> {
        let driver = Driver::start()?;
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "acceptInsecureCerts": true,
            "timeouts": { "script": PATIENCE.as_millis() as u64 },
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,1000",
            ] },
        } } });
        let opened = driver.ask("POST", "/session", &capabilities).expect("a session");
        let session = format!("/session/{}", opened["sessionId"].as_str().unwrap());
        let runtime = Runtime::new().unwrap();
        let ending = CancellationToken::new();
        let site = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind((address, 0)).await.unwrap();
            let bound = listener.local_addr().unwrap();
            let app = App::new(run, ending.clone());
            let door = Door::at(bound, &app.run.config.security, &[]).unwrap();
            let site = format!("{}://127.0.0.1:{}", door.scheme(), bound.port());
            tokio::spawn(server::serve(listener, app, door));
            site
        });
        Some(Self {
            site,
            session,
            driver,
            ending,
            runtime,
        })
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, Value> {
        self.driver.ask("POST", &format!("{}{path}", self.session), body)
    }

    /// Opens a path of the studio.
    pub fn open(&self, path: &str) {
        let url = format!("{}{path}", self.site);
        self.post("/url", &json!({ "url": url })).unwrap();
    }

    /// Opens a new game, and waits until the board can be played.
    pub fn open_table(&self, query: &str) {
        self.open(&format!("/play?{query}"));
        self.find("[data-play][data-at='0'] .turn");
    }

    /// Checks that the open page is not wider than these widths.
    pub fn fits(&self, widths: &[u32]) {
        for &width in widths {
            self.set_width(width);
            let over = self
                .script("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
            let widest = self.script(
                "return [...document.querySelectorAll('main *')].filter((part) => part.getBoundingClientRect().right > \
                 document.documentElement.clientWidth).map((part) => part.outerHTML.slice(0, 80)).slice(0, 5)",
            );
            assert!(
                over.as_i64().unwrap() <= 0,
                "{over} pixels too wide at {width}: {widest}"
            );
        }
    }

    /// Cookies that the browser sends to the page.
    pub fn cookies(&self) -> Value {
        let path = format!("{}/cookie", self.session);
        self.driver.ask("GET", &path, &Value::Null).unwrap()
    }

    /// Runs a script in the page.
    pub fn script(&self, script: &str) -> Value {
        let body = json!({ "script": script, "args": [] });
        self.post("/execute/sync", &body).unwrap()
    }

    /// Waits until an expression is true in the page.
    pub fn wait(&self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.script(&format!("return Boolean({expression})")) != true {
            assert!(
                Instant::now() < until,
                "{expression} never came true; the page says {}",
                self.script("return document.querySelector('main').innerText")
            );
        }
    }

    /// Waits for an element, and returns its id.
    pub fn find(&self, css: &str) -> String {
        self.wait(&format!("document.querySelector({})", json!(css)));
        let found = self.post("/element", &json!({ "using": "css selector", "value": css }));
        found.unwrap()[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Waits for an element and clicks it as a person does.
    pub fn click(&self, css: &str) {
        let element = self.find(css);
        let clicked = self.post(&format!("/element/{element}/click"), &json!({}));
        clicked.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Text of an element.
    pub fn text(&self, css: &str) -> String {
        self.find(css);
        let text = self.script(&format!(
            "return document.querySelector({}).innerText",
            json!(css)
        ));
        text.as_str().unwrap().to_owned()
    }

    /// Types text into a field.
    pub fn fill(&self, css: &str, text: &str) {
        let element = self.find(css);
        self.post(&format!("/element/{element}/clear"), &json!({}))
            .unwrap();
        self.post(&format!("/element/{element}/value"), &json!({ "text": text }))
            .unwrap();
    }

    /// Gives the page a width, which may be less than that of the least window.
    pub fn set_width(&self, width: u32) {
        let params = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        let body = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": params });
        self.post("/goog/cdp/execute", &body).unwrap();
    }

    /// Sets what the person prefers: a theme, `light` or `dark`, without motion.
    pub fn prefer(&self, theme: &str) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": theme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        let body = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "features": features } });
        self.post("/goog/cdp/execute", &body).unwrap();
    }

    /// Switches the scripts of pages on or off.
    pub fn set_scripts(&self, are_on: bool) {
        let body = json!({ "cmd": "Emulation.setScriptExecutionDisabled", "params": { "value": !are_on } });
        self.post("/goog/cdp/execute", &body).unwrap();
    }

    /// All layout shifts since the page was loaded that follow no input, each with its size and with elements that moved.
    pub fn shifts(&self) -> Value {
        self.script(
            "const shifts = []; \
             const drawn = () => new Promise(done => requestAnimationFrame(() => setTimeout(done))); \
             return drawn().then(() => new PerformanceObserver(list => shifts.push(...list.getEntries())) \
             .observe({ type: 'layout-shift', buffered: true })).then(drawn).then(drawn) \
             .then(() => shifts.filter(shift => !shift.hadRecentInput).map(shift => \
             [shift.value, ...shift.sources.map(source => source.node?.outerHTML?.slice(0, 80))]))",
        )
    }

    /// Lets the pages of the studio read and write the clipboard.
    pub fn allow_clipboard(&self) {
        let params =
            json!({ "origin": self.site, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] });
        let body = json!({ "cmd": "Browser.grantPermissions", "params": params });
        self.post("/goog/cdp/execute", &body).unwrap();
    }

    /// Clicks, drags, taps or types on cells one after the other.
    pub fn press(&self, hand: Hand, cells: &[usize]) {
        match (hand, cells) {
            (Hand::Drag, &[from, to]) => self.drag(from, to),
            (Hand::Keys, _) => {
                for &cell in cells {
                    self.walk_to(cell);
                    self.type_key(key::ENTER);
                }
            }
            _ => {
                let kind = if hand == Hand::Touch { "touch" } else { "mouse" };
                for &cell in cells {
                    self.point(kind, &[self.place(cell), down(), up()]);
                }
            }
        }
    }

    /// Picks a piece, e.g. for a promotion.
    pub fn pick(&self, hand: Hand, kind: &str) {
        if hand != Hand::Keys {
            self.click(&format!(".picker button[aria-label='{kind}']"));
            return;
        }
        // The first button has the focus; Tab leads to the others.
        self.wait("document.activeElement.closest('.picker')");
        while self.script("return document.activeElement.ariaLabel") != kind {
            self.type_key(key::TAB);
        }
        self.type_key(key::ENTER);
    }

    /// Drags from one cell to another.
    pub fn drag(&self, from: usize, to: usize) {
        let nudge = json!({ "type": "pointerMove", "duration": 0, "origin": "pointer", "x": 12, "y": 3 });
        self.point("mouse", &[self.place(from), down(), nudge, self.place(to), up()]);
    }

    fn point(&self, kind: &str, actions: &[Value]) {
        let source = json!({ "type": "pointer", "id": kind, "parameters": { "pointerType": kind }, "actions": actions });
        self.post("/actions", &json!({ "actions": [source] })).unwrap();
    }

    /// Pointer moved to the middle of a cell.
    fn place(&self, cell: usize) -> Value {
        let element = self.find(&format!(
            ".board-slot [data-cell=\"{cell}\"] > :is(.square, .back)"
        ));
        json!({ "type": "pointerMove", "duration": 0, "origin": { ELEMENT: element }, "x": 0, "y": 0 })
    }

    /// Moves the focus to a cell with the arrow keys, on a board that is drawn for the first player.
    fn walk_to(&self, cell: usize) {
        self.script("document.querySelector('.board-slot [data-cell][tabindex=\"0\"]').focus()");
        loop {
            let focused = self.script(
                "return [document.activeElement.dataset.cell, document.querySelector('[data-board]').dataset.columns]",
            );
            let [now, columns]: [usize; 2] = [0, 1].map(|at| {
                focused[at]
                    .as_str()
                    .expect("a cell has the focus")
                    .parse()
                    .unwrap()
            });
            self.type_key(match (cell / columns, cell % columns) {
                (row, _) if row > now / columns => key::DOWN,
                (row, _) if row < now / columns => key::UP,
                (_, column) if column > now % columns => key::RIGHT,
                (_, column) if column < now % columns => key::LEFT,
                _ => return,
            });
        }
    }

    /// Types a key where the focus is.
    pub fn type_key(&self, key: char) {
        let actions = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        let source = json!({ "type": "key", "id": "keys", "actions": actions });
        self.post("/actions", &json!({ "actions": [source] })).unwrap();
    }

    /// Checks the page with axe-core, whose script is `axe`: one line for each violation of its rules.
    pub fn violations(&self, axe: &str) -> Vec<String> {
        self.script(axe);
        let found = self.script(
            "return axe.run().then(found => found.violations.flatMap(rule => \
             rule.nodes.map(node => `${rule.id}: ${node.html} ${node.failureSummary}`)))",
        );
        let lines = found.as_array().expect("axe-core lists violations");
        lines
            .iter()
            .map(|line| line.as_str().unwrap().to_owned())
            .collect()
    }

    /// Checks that the console has no error and no report of the policy, and ends the session.
    pub fn end(self) {
        let log = self.post("/se/log", &json!({ "type": "browser" })).unwrap();
        let bad: Vec<&Value> = log
            .as_array()
            .into_iter()
            .flatten()
            // The browser notes the status of what the studio refuses.
            .filter(|entry| {
                let message = entry["message"].to_string();
                let is_refusal = ["400 (Bad Request)", "401 (Unauthorized)", "403 (Forbidden)"]
                    .iter()
                    .any(|status| message.contains(status));
                // A test opens this page to see the one about missing pages.
                let is_missing = message.contains("/nothing-here - ") && message.contains("404 (Not Found)");
                entry["level"] != "INFO" && !is_refusal && !is_missing
            })
            .collect();
        assert!(bad.is_empty(), "{bad:?}");
        self.driver.ask("DELETE", &self.session, &Value::Null).unwrap();
        self.ending.cancel();
        // As the program does: it waits for no exact solution.
        self.runtime.shutdown_background();
    }
}

fn down() -> Value {
    json!({ "type": "pointerDown", "button": 0 })
}

fn up() -> Value {
    json!({ "type": "pointerUp", "button": 0 })
}
