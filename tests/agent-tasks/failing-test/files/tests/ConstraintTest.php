<?php

declare( strict_types=1 );

use Library\Constraint;
use PHPUnit\Framework\TestCase;

final class ConstraintTest extends TestCase {

	/** @dataProvider rows */
	public function test_allows( string $constraint, string $version, bool $expected ): void {
		$this->assertSame( $expected, Constraint::parse( $constraint )->allows( $version ), "$constraint and $version" );
	}

	public function rows(): array {
		return array(
			'exact'             => array( '1.2.3', '1.2.3', true ),
			'not exact'         => array( '1.2.3', '1.2.4', false ),
			'at least'          => array( '>=1.2', '1.10', true ),
			'range'             => array( '>=1.2 <2', '2.0.0', false ),
			'tilde patch'       => array( '~1.2.3', '1.3.0', false ),
			'tilde minor'       => array( '~1.2', '1.9.0', true ),
			'caret'             => array( '^1.2.3', '1.9.0', true ),
			'caret next major'  => array( '^1.2.3', '2.0.0', false ),
			'caret below one'   => array( '^0.2.3', '0.3.0', false ),
			'caret patch'       => array( '^0.2.3', '0.2.9', true ),
		);
	}

	public function test_refuses_what_is_no_version(): void {
		$this->expectException( InvalidArgumentException::class );
		Constraint::parse( '>=one' );
	}
}
