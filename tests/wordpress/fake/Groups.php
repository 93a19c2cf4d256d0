<?php
/**
 * The stand-in refuses all groups: they are tested with the real extension, which implements their rules.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Batch {

	public static function read( array $input, string $session ): self {
		throw Exception::make( 'wp_codebox_tasks_missing', 'The stand-in knows no tasks.' );
	}
}

final class GroupSlot {

	public static function take( string $site, int $user ): self {
		return new self();
	}
}

final class Fanout {

	public static function read( array $input, int $most, string $session ): self {
		throw Exception::make( 'wp_codebox_fanout_workers_missing', 'The stand-in knows no workers.' );
	}
}
