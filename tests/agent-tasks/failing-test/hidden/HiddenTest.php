<?php

declare( strict_types=1 );

use Library\Constraint;
use PHPUnit\Framework\TestCase;

/** The rows of README.md that the visible tests leave out. */
final class HiddenTest extends TestCase {

	/** @dataProvider rows */
	public function test_allows( string $constraint, string $version, bool $expected ): void {
		$this->assertSame( $expected, Constraint::parse( $constraint )->allows( $version ), "$constraint and $version" );
	}

	public function rows(): array {
		return array(
			array( '^0.0.3', '0.0.3', true ),
			array( '^0.0.3', '0.0.4', false ),
			array( '^0.2.3', '0.2.3', true ),
			array( '^0.2.3', '0.2.2', false ),
			array( '^0.2.3', '1.0.0', false ),
			array( '^0.5', '0.5.9', true ),
			array( '^0.5', '0.6.0', false ),
			array( '^3.4', '3.99.0', true ),
			array( '^3.4', '4.0.0', false ),
			array( '~2.3', '2.99.1', true ),
			array( '~2.3.1', '2.3.99', true ),
			array( '~2.3.1', '2.4.0', false ),
			array( '>=1 <1.5', '1.4.99', true ),
			array( '1.2', '1.2.0', true ),
		);
	}
}
