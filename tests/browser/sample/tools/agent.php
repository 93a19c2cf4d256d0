<?php
/**
 * The agent of the browser suite: `php tools/agent.php <what>`, working in the plugin's
 * directory inside the sandbox.
 */

declare(strict_types=1);

/**
 * Prints text and waits long enough for one poll of the page.
 */
function say( string $text, int $milliseconds = 0 ): void {
	echo $text, "\n";
	usleep( $milliseconds * 1000 );
}

/**
 * Prints markup and control sequences that a browser must not interpret.
 */
function hostile( string $mark ): string {
	return implode(
		"\n",
		[
			"<script>window.codeboxTripped='$mark-script'</script>",
			"<img src=x onerror=\"window.codeboxTripped='$mark-img'\">",
			"</textarea></pre></div><svg onload=\"window.codeboxTripped='$mark-svg'\">",
			"<a href=\"javascript:window.codeboxTripped='$mark-link'\">press me</a>",
			"{{constructor.constructor('window.codeboxTripped=1')()}} \${window.codeboxTripped=1}",
			"\e[31mred\e[0m \e]8;;javascript:alert(1)\e\\linked\e]8;;\e\\ \e[2Jcleared \e]0;title\x07",
			"if (access\u{202E}nimda\u{2066}) \u{200B}zero\u{200D}width \u{E0041}tag \u{85}nel \u{2028}ls",
			"bell \x07 backspace \x08 null \x00 carriage\rreturn",
			"not UTF-8: caf\xe9 \xff\xfe",
		]
	);
}

/**
 * Fixes the spelling in two files and deletes a third.
 */
function fix(): void {
	foreach ( [ 'sample.php' => [ 'helo', 'hello' ], 'inc/more.php' => [ 'moore', 'more' ] ] as $file => [ $from, $to ] ) {
		file_put_contents( $file, str_replace( $from, $to, (string) file_get_contents( $file ) ) );
		say( "repaired: $file", 300 );
	}
}

switch ( $argv[1] ?? 'fix' ) {
	case 'fix':
		// Waits for SIGALRM, which wake() of the harness sends after it saw the output, so slow browsers do not miss it.
		$told = false;
		pcntl_async_signals( true );
		pcntl_signal(
			SIGALRM,
			static function () use ( &$told ): void {
				$told = true;
			}
		);
		say( 'looking for spelling mistakes' );
		for ( $until = microtime( true ) + 300; ! $told && microtime( true ) < $until; ) {
			usleep( 20000 );
		}
		fix();
		unlink( 'inc/old.php' );
		say( 'removed: inc/old.php' );
		fwrite( STDERR, "\e[33mone warning\e[0m\n" );
		exit( 0 );
	case 'sleep':
		say( 'going to sleep' );
		sleep( 600 );
		exit( 0 );
	case 'quick':
		fix();
		exit( 0 );
	case 'break':
		file_put_contents( 'sample.php', "\nno_such_function();\n", FILE_APPEND );
		exit( 0 );
	case 'sensitive':
		file_put_contents( '.user.ini', "; nothing\n" );
		file_put_contents( 'readme.txt', "text\n" );
		exit( 0 );
	case 'hostile':
		say( hostile( 'output' ), 500 );
		file_put_contents( 'inc/more.php', "<?php\n\n/*\n" . str_replace( [ "\xe9", "\xff", "\xfe", "\0" ], '?', hostile( 'diff' ) ) . "\n*/\n" );
		file_put_contents( "inc/<img src=x onerror=window.codeboxTripped='name'>.txt", "a name\n" );
		file_put_contents( "inc/\u{202E}php.evil\u{2066}.txt", "a turned name\n" );
		file_put_contents( "inc/<img src=x onerror=window.codeboxTripped='flag'>\u{202E}.phar", "an archive\n" );
		file_put_contents( 'inc/.user.ini', "engine = off\n" );
		file_put_contents( "inc/bytes.txt", "caf\xe9 \xff\n" );
		file_put_contents( 'inc/picture.bin', str_repeat( "\0\1\2\3", 64 ) );
		file_put_contents( 'inc/long.txt', str_repeat( 'x', 200000 ) . "\n" );
		file_put_contents( 'inc/many.txt', implode( "\n", range( 1, 30000 ) ) . "\n" );
		exit( 0 );
	case 'flood':
		for ( $line = 0; $line < 50000; $line++ ) {
			echo $line, ' ', str_repeat( 'flood <b>', 10 ), "\xff\n";
		}
		echo str_repeat( 'no line end ', 40000 );
		file_put_contents( 'sample.php', "\n// flooded\n", FILE_APPEND );
		exit( 0 );
}
exit( 64 );
