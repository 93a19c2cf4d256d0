<?php
/**
 * Command `wordpress.block-render`: renders one block as the front end would.
 *
 * `markup` is a block's text with its comment; else `attrs-json` and `content` make one.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/block.php';

$codebox_watch = WPCodebox\Guest\Command\watch_blocks();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => ( new WPCodebox\Guest\Command\Block( $arguments, $codebox_watch ) )->exercise( 'render' ) );
