<?php return static function ( \WPCodebox\Tests\Harness $t ): void {};
