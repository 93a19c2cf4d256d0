<?php
/**
 * Command `wordpress.cache-churn-observation`: what one request to the REST API does to the object
 * cache, options and transients.
 *
 * The object cache is observed where it is WordPress's own, which lives for one request.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/rest.php';
require __DIR__ . '/lib/watch.php';
require __DIR__ . '/lib/observation.php';

WPCodebox\Guest\Command\begin();
$codebox_watch = WPCodebox\Guest\Command\observer();
require WPCodebox\Guest\Command\wordpress();
require __DIR__ . '/lib/churn.php';
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => WPCodebox\Guest\Command\observe_churn( $arguments, $codebox_watch ) );
