<?php
/**
 * Command `wordpress.execution-surfaces`: lists the entry points through which requests can run this
 * WordPress's code, with the callbacks registered for each.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/surfaces.php';

defined( 'WP_ADMIN' ) || define( 'WP_ADMIN', true );
begin();
require wordpress( '/wp-admin/index.php' );
finish(
	static fn (): array => result( 'wordpress-execution-surfaces' ) + array(
		'surfaces'    => execution_surfaces(),
		'unsupported' => array(
			array(
				'kind'    => 'editor',
				'command' => 'wordpress.editor-actions',
				'reason'  => 'the block editor runs in a browser',
			),
			array(
				'kind'   => 'fuzz-suite',
				'reason' => 'there is no fuzz engine here; write the inputs as steps of a recipe',
			),
		),
		'diagnostics' => array(),
	)
);
