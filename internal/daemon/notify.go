package daemon

import (
	"net"
	"os"
)

// Notify sends a state such as "READY=1" to the service manager that
// $NOTIFY_SOCKET names (sd_notify(3)). Without one it does nothing.
func Notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Net: "unixgram", Name: name})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}
