"""The flags that say where webhooks are served, by which certificate, and how API servers find them."""

from pathlib import Path

from koordpolicy.cli.flags.repository import Flags

WEBHOOK = "--webhook"
_SERVICE = "koordpolicy-manager-webhook"


def add_webhook_flags(parser: Flags) -> None:
    """Declare them."""
    parser.add_argument(
        WEBHOOK,
        metavar="[HOST]:PORT|unix:PATH",
        default="off",
        help="serve the webhooks there by TLS, on every replica; API servers look for them at port 9876 of the Service's pods"
        " as shipped; or at a Unix socket to `koordpolicy front`, which serves by TLS and outlives the manager (off)",
    )
    parser.add_argument(
        "--webhook-service",
        metavar="NAME",
        default=_SERVICE,
        help=f"the Service in --namespace by which API servers find them ({_SERVICE})",
    )
    parser.add_argument(
        "--webhook-url",
        metavar="URL",
        default="",
        help="how API servers find them in place of a Service, such as https://manager.example:9876",
    )
    parser.add_argument(
        "--webhook-cert-file",
        metavar="FILE",
        type=Path,
        help="serve them with this certificate, such as cert-manager's; by default replicas share one of their own in the"
        " Secret koordpolicy-webhook-cert",
    )
    parser.add_argument("--webhook-private-key-file", metavar="FILE", type=Path, help="its key")
    parser.add_argument(
        "--webhook-ca-file",
        metavar="FILE",
        type=Path,
        help="the CA of that certificate, for API servers; without it, whoever injects one is left to do so",
    )
    parser.add_argument(
        "--webhook-client-ca-file",
        metavar="FILE",
        type=Path,
        help="answer only API servers whose client certificate this CA has signed (default: whoever reaches the port); a front"
        " needs its --tls-client-ca-file as well",
    )
    parser.add_argument(
        "--webhook-cert-lifetime",
        metavar="DURATION",
        default="2160h",
        help="how long a certificate of our own holds; renewed when a third of it is left (2160h, which is 90 days)",
    )
    parser.add_argument(
        "--native-admission",
        action="store_true",
        help="keep ValidatingAdmissionPolicies and MutatingAdmissionPolicies for the admission rules and co-location profiles that"
        " API servers can decide by themselves, and serve the webhooks for the rest alone (Kubernetes 1.34 or newer, profiles"
        " from 1.36)",
    )
    parser.add_argument(
        "--webhook-drain",
        metavar="DURATION",
        default="5s",
        help="go on answering so long once told to stop, until no one sends requests here (5s)",
    )
