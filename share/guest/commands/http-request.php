<?php
/**
 * Command `wordpress.http-request`: sends one HTTP request.
 *
 * A path, or a URL of the guest's own site (localhost, 127.0.0.1, the site's own host), is sent to a web
 * server started for it on the guest's loopback device. Any other URL leaves the guest through the egress
 * bridge, which allows only what the run's policy permits. This process does not load WordPress, so the
 * response is what a visitor would get.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/http-client.php';

begin();
finish( http_request( ... ) );
