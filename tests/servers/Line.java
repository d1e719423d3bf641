import java.io.FileWriter;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** A server of a line protocol with a thread for each connection, as line.py is one: java Line PORT LOG */
public class Line {
    static FileWriter log;

    public static void main(String[] words) throws Exception {
        log = new FileWriter(words[1]);
        ServerSocket server = new ServerSocket(Integer.parseInt(words[0]), 50, InetAddress.getByName("127.0.0.1"));
        while (true) {
            Socket socket = server.accept();
            socket.setTcpNoDelay(true);
            new Thread(() -> serve(socket)).start();
        }
    }

    static void serve(Socket socket) {
        byte[] line = new byte[64];
        try {
            InputStream in = socket.getInputStream();
            for (int n; (n = in.read(line)) > 0; ) {
                long begin = System.nanoTime();
                long until = begin + Long.parseLong(new String(line, 0, n).trim()) * 1000;
                while (System.nanoTime() < until) { }
                long sends = System.nanoTime();
                socket.getOutputStream().write("ok\n".getBytes());
                long end = System.nanoTime();
                synchronized (log) {
                    log.write(begin + " " + sends + " " + end + "\n");
                    log.flush();
                }
            }
        } catch (java.io.IOException closed) {
            // The client has gone.
        }
    }
}
