//! What comes by name from other resources, written in place: routes, filter configs and endpoints.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fields;
use super::gather::Gathered;
use super::resources::Resources;
use crate::yaml::Part;

const MANAGER: &str = "HttpConnectionManager";

impl Gathered<'_> {
    /// Joins everything under `static_resources`.
    pub(super) fn join(&mut self, resources: &mut Part) {
        fields::each(resources, "/static_resources", "listeners", |listener, at| self.listener(listener, at));
        fields::each(resources, "/static_resources", "clusters", |cluster, at| self.cluster(cluster, at));
    }

    fn listener(&mut self, listener: &mut Part, at: &str) {
        for field in ["filter_chains", "default_filter_chain"] {
            fields::each(listener, at, field, |chain, at| {
                fields::each(chain, at, "filters", |filter, at| {
                    fields::edit(filter, at, "typed_config", |config, at| {
                        if fields::kind(config.value()) == Some(MANAGER) {
                            self.manager(config, at);
                        }
                    });
                });
            });
        }
    }

    fn manager(&mut self, manager: &mut Part, at: &str) {
        fields::each(manager, at, "http_filters", |filter, at| self.filter(filter, at));
        let Some(rds) = fields::take(manager, "rds") else { return };
        self.read_source(&rds, "config_source");
        let name = fields::text(rds.value(), "route_config_name").unwrap_or_default().to_owned();
        let Some(mut routes) = self.copy(|all| &all.routes, &name, &rds) else {
            // Refused with all else that cannot be re-hosted.
            manager.insert("rds", rds);
            return;
        };
        let mut what = format!("routes `{name}` written in place of `rds`");
        if fields::get(routes.value(), "validate_clusters").is_none() {
            // The default differs between discovered and written routes.
            routes.insert("validate_clusters", routes.beside(json!(false)));
            what.push_str(", with `validate_clusters: false` as discovered routes have it");
        }
        manager.insert("route_config", routes);
        self.note(&format!("{at}/route_config"), what);
    }

    /// A filter whose config is discovered by itself.
    fn filter(&mut self, filter: &mut Part, at: &str) {
        let Some(discovery) = fields::take(filter, "config_discovery") else { return };
        self.read_source(&discovery, "config_source");
        let name = fields::text(filter.value(), "name").unwrap_or_default().to_owned();
        let config = self.copy(|all| &all.filters, &name, &discovery);
        match config.and_then(|mut config| fields::take(&mut config, "typed_config")) {
            Some(config) => {
                filter.insert("typed_config", config);
                self.note(at, format!("the config of HTTP filter `{name}` written in place of `config_discovery`"));
            }
            None => filter.insert("config_discovery", discovery),
        }
    }

    fn cluster(&mut self, cluster: &mut Part, at: &str) {
        let is_eds = match fields::get(cluster.value(), "type") {
            Some(Value::String(kind)) => kind.eq_ignore_ascii_case("EDS"),
            Some(kind) => kind.as_u64() == Some(3),
            None => false,
        };
        if !is_eds {
            return;
        }
        let name = fields::text(cluster.value(), "name").unwrap_or_default().to_owned();
        let config = fields::take(cluster, "eds_cluster_config");
        let by_file = config.as_ref().is_some_and(|config| self.read_source(config, "eds_config"));
        let service = config.as_ref().and_then(|config| fields::text(config.value(), "service_name"));
        let service = service.filter(|service| !service.is_empty()).unwrap_or(&name).to_owned();
        let found = self.copy(|all| &all.endpoints, &service, cluster);
        let missing = found.is_none();
        if missing && (by_file || self.is_bootstrap) {
            // A bootstrap of our user's own: what it lacks there is refused with all else.
            config.into_iter().for_each(|config| cluster.insert("eds_cluster_config", config));
            return;
        }
        let key = cluster.beside(json!("STATIC"));
        fields::take(cluster, "type");
        cluster.insert("type", key);
        let assignment = found.unwrap_or_else(|| cluster.beside(one_endpoint(&name)));
        cluster.insert("load_assignment", assignment);
        let what = match missing {
            true => format!("cluster `{name}`: type EDS, whose endpoints are not here: STATIC with one endpoint"),
            false => format!("cluster `{name}`: endpoints `{service}` written in place, STATIC instead of EDS"),
        };
        self.note(at, what);
    }

    /// The resource of a name, to be written at `owner`.
    fn copy(&mut self, of: impl Fn(&Resources) -> &BTreeMap<String, Part>, name: &str, owner: &Part) -> Option<Part> {
        let found = of(&self.resources).get(name)?.clone();
        // Dropped again where it is too much: one copy at a time is no harm.
        self.may_copy(found.value(), owner).then_some(found)
    }

    /// Reads the file that a config source names, if it names one.
    pub(super) fn read_source(&mut self, owner: &Part, field: &str) -> bool {
        let Some(mut source) = fields::take(&mut owner.clone(), field) else { return false };
        let path = fields::take(&mut source, "path_config_source")
            .and_then(|mut source| fields::take(&mut source, "path"))
            .or_else(|| fields::take(&mut source, "path"));
        path.is_some_and(|path| self.read_file(&path))
    }
}

/// Endpoints of a cluster whose own are not known; where they lie does not matter, because re-hosting moves them.
pub(super) fn one_endpoint(cluster: &str) -> Value {
    json!({
        "cluster_name": cluster,
        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {
            "socket_address": {"address": "127.0.0.1", "port_value": 80}
        }}}]}]
    })
}
