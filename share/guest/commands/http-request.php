<?php
/**
 * Command `wordpress.http-request`: sends one request.
 *
 * A path, or a URL of the guest's own site (localhost, 127.0.0.1, the site's own host), goes to
 * a web server that is started for it on the guest's loopback device. Any other URL leaves the
 * guest through its bridge, which only lets out what the run's policy allows. No WordPress is
 * loaded here: what answers is the site as a visitor meets it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/outside.php';

begin();
finish( http_request( ... ) );
