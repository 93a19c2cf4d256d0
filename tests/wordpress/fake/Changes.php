<?php
/**
 * Applied changes of the stand-in extension: there are none.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Changes {

	public static function list( string $site ): array {
		return [];
	}

	public static function forget( string $site ): int {
		return 0;
	}

	public static function recover( string $site ): array {
		return [ 'running' => false, 'settled' => [], 'failed' => [] ];
	}
}

final class ChangeLock {

	public static function take( string $site ): self {
		return new self();
	}
}
