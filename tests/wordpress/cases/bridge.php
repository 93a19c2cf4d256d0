<?php
declare(strict_types=1);
return static function ( \WPCodebox\Tests\Harness $t ): void {};
